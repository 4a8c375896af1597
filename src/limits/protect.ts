import type { FastifyPluginAsync } from 'fastify'
import { type ClientOf, createClientOf, createSubnets } from '../http/request/client-address.ts'
import type { LimitRule, Limits, LimitsOptions } from './limits.ts'

/** A client that installs all skills sends a request for each at once, and some more. */
const EXTRA_UNITS = 1_000

interface ProtectOptions extends Omit<LimitsOptions, 'burst' | 'clientOf' | 'isProxy'> {
  /** Units that a caller may use at once, whatever the number of skills. */
  readonly burst: number
  readonly skills: { namesNow (): readonly string[] }
  readonly isLimited: boolean
  readonly trustedProxies: readonly string[]
  /** Address of a store that replicas share. */
  readonly store: string | undefined
}

/** What stands between callers and the service. Without limits no hook runs, and requests pay nothing. */
export interface Protection {
  readonly plugins: readonly FastifyPluginAsync[]
  readonly clientOf: ClientOf | undefined
  readonly admitCall: Limits['admitCall'] | undefined
  /** Refusals since the start, by limit. */
  readonly refusals: ReadonlyMap<LimitRule, number>
  /** Exchanges with the shared store that failed. */
  storeFailures (): number
  close (): void
}

export async function protect ({ isLimited, trustedProxies, store, burst, skills, ...options }: ProtectOptions): Promise<Protection> {
  const clientOf = createClientOf(trustedProxies)
  const own = { clientOf: trustedProxies.length > 0 ? clientOf : undefined }
  if (!isLimited) return { ...own, plugins: [], admitCall: undefined, refusals: new Map(), storeFailures: () => 0, close () {} }
  const { Limits } = await import('./limits.ts')
  const limits = new Limits({ ...options, clientOf, isProxy: createSubnets(trustedProxies), burst: () => Math.max(burst, skills.namesNow().length + EXTRA_UNITS) })
  const shared = store === undefined ? undefined : await shareLimits(store, limits, options)
  return {
    ...own,
    plugins: [limits.plugin],
    admitCall: (request, tool) => limits.admitCall(request, tool),
    refusals: limits.refusals,
    storeFailures: () => shared?.failures ?? 0,
    close: () => { shared?.close() }
  }
}

async function shareLimits (url: string, { shared: buckets }: Limits, { rate, log }: Pick<LimitsOptions, 'rate' | 'log'>) {
  const { connectRedis, SharedStore } = await import('./shared-store.ts')
  return new SharedStore({ redis: await connectRedis(url), buckets, rate, log })
}
