import { setTimeout as pause } from 'node:timers/promises'

/** Time between two requests of one client, which would otherwise take all of the processor's. */
const PAUSE_MS = 5

const TARGETS = ['/skills', '/skills/calculator', '/catalog', '/skills/calculator/archive.zip',
  '/.well-known/agent-skills/index.json']

export interface Load {
  /** How many requests were answered, and what was wrong with some of them. */
  stop (): Promise<{ readonly answered: number, readonly failures: readonly string[] }>
}

/** Three clients: two keep their connections, and one makes a new one for each request. */
export function startLoad (url: string): Load {
  const stopped = new AbortController()
  const failures: string[] = []
  let answered = 0

  async function ask (headers: Readonly<Record<string, string>>): Promise<void> {
    for (let count = 0; !stopped.signal.aborted; count++) {
      const target = TARGETS[count % TARGETS.length] ?? '/'
      const outcome = await fetch(`${url}${target}`, { headers }).then(async (response) => {
        const body = Buffer.from(await response.arrayBuffer())
        return response.ok ? undefined : `${response.status} ${body.toString('utf8', 0, 1_000)}`
      }, (error: Error) => error.message)
      answered++
      if (outcome !== undefined) failures.push(`${target}: ${outcome}`)
      await pause(PAUSE_MS)
    }
  }

  const clients = [ask({}), ask({}), ask({ connection: 'close' })]
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(clients)
      return { answered, failures }
    }
  }
}
