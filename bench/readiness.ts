import type { Server } from './process.ts'

interface Readiness {
  readonly generation: number
  readonly watcher: { readonly status: string }
}

async function readiness (server: Server, headers: Readonly<Record<string, string>> = {}): Promise<Readiness | undefined> {
  const response = await fetch(`${server.url}/readyz`, { headers })
  return response.ok ? await response.json() as Readiness : undefined
}

export async function generationOf (server: Server): Promise<number | undefined> {
  return (await readiness(server))?.generation
}

/** Resolves when every watch is in place. @param headers of a caller who may know */
export async function watching (server: Server, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  while ((await readiness(server, headers))?.watcher.status !== 'watching') await new Promise((resolve) => setTimeout(resolve, 100))
}
