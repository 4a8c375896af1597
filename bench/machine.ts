import { cpus, release, totalmem } from 'node:os'

/** What figures were measured on. */
export function machine (): string {
  const [cpu] = cpus()
  return `${cpus().length} × ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.version}`
}
