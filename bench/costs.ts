import { Clients, load, type Request } from './load.ts'
import type { Server } from './process.ts'
import { median } from './table.ts'

/** CPU time of a slice, in milliseconds: the load of a machine changes within less than a second. */
const SLICE_MS = 50
const SLICES = 15
const MIN_REQUESTS = 100
const MAX_REQUESTS = 5_000

/** Enough for V8 to compile the hot functions: with 10,000 a request costs up to a third more. */
export const WARM_UP_REQUESTS = 20_000

export interface Subject {
  readonly server: Server
  /** Several by turns. */
  readonly request: Request | readonly [Request, ...Request[]]
  /** Requests before the first that counts. */
  readonly warmUp: number
}

/** CPU time of a request of each subject by the slices of a round, in milliseconds. */
export type Costs<Name extends string> = Readonly<Record<Name, readonly number[]>>

/**
 * Measures what requests cost their servers. The subjects take turns many times, so that other work on the machine affects all of
 * them: the ratio of two costs holds where neither of them does.
 */
export async function measureCosts<Name extends string> (subjects: Readonly<Record<Name, Subject>>): Promise<Costs<Name>> {
  const all = []
  for (const [name, { server, request, warmUp }] of Object.entries<Subject>(subjects)) {
    const before = server.threadsCpu()
    await load(request, { requests: warmUp })
    const cost = (server.threadsCpu() - before) / warmUp
    all.push({ name, server, request, requests: Math.min(MAX_REQUESTS, Math.max(MIN_REQUESTS, Math.round(SLICE_MS / cost))), costs: [] as number[] })
  }
  // Now, because a server ends connections that wait: bare node:http after five seconds.
  const clients = new Map(await Promise.all(all.map(async ({ name, request }) => [name, await Clients.connect(request)] as const)))
  for (let slice = 0; slice < SLICES; slice++) {
    // The order alternates, so that a machine that becomes slower or faster favours no one.
    for (const { name, server, requests, costs } of slice % 2 === 0 ? all : all.toReversed()) {
      const before = server.threadsCpu()
      await clients.get(name)?.send({ requests })
      costs.push((server.threadsCpu() - before) / requests)
    }
  }
  for (const each of clients.values()) each.close()
  return Object.fromEntries(all.map(({ name, costs }) => [name, costs])) as Record<Name, number[]>
}

/** The ratio of two costs in a round: the median of those of its slices. */
export function ratioOf<Name extends string> (costs: Costs<Name>, over: Name, under: Name): number {
  return median(costs[over].map((cost, slice) => cost / (costs[under][slice] ?? Number.NaN)))
}

/** In microseconds, the median of all slices of some rounds. */
export function microseconds<Name extends string> (rounds: readonly Costs<Name>[], name: Name): number {
  return 1_000 * median(rounds.flatMap((costs) => costs[name]))
}
