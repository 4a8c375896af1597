import { isSubnet } from '../http/request/client-address.ts'
import { parseCount } from './parse.ts'
import type { Setting } from './setting.ts'

const positive = (text: string): number | undefined => parseCount(text) || undefined

/** A `%` of a password is `%25`. */
function isDecodable (text: string): boolean {
  try {
    return decodeURIComponent(text) !== ''
  } catch {
    return false
  }
}

/** How much one caller may ask for. */
export const LIMITS_SETTINGS = {
  limits: {
    variable: 'LIMITS',
    default: 'auto',
    parse: (text) => (['auto', 'on', 'off'] as const).find((mode) => mode === text),
    mustBe: 'auto, on or off',
    meaning: 'limits for each caller, `auto`, `on` or `off`; `auto` turns limits off only on a loopback address without an access file',
    section: 'limits'
  },
  limitRate: {
    variable: 'LIMIT_RATE',
    default: '100',
    parse: positive,
    mustBe: 'a whole number above 0',
    meaning: 'units that come back to each caller per second; a request or a tool call is one',
    section: 'limits'
  },
  limitBurst: {
    variable: 'LIMIT_BURST',
    default: '2000',
    parse: positive,
    mustBe: 'a whole number above 0',
    meaning: 'units that a caller may use at once; never less than the number of skills plus 1,000',
    section: 'limits'
  },
  limitsStore: {
    variable: 'LIMITS_STORE',
    parse: (text) => /^rediss?:\/\/\S+$/.test(text) && URL.canParse(text) && isDecodable(text) ? text : undefined,
    isSecret: true,
    mustBe: 'an address such as redis://127.0.0.1:6379',
    meaning: 'Redis or Valkey in which several replicas share the limits; needs the package `ioredis`',
    section: 'limits'
  },
  /** Addresses and subnets. */
  trustedProxies: {
    variable: 'TRUSTED_PROXIES',
    separator: ',',
    parse: (text) => isSubnet(text.trim()) ? text.trim() : undefined,
    mustBe: 'an address, or one with the length of its prefix such as 10.0.0.0/8',
    meaning: 'proxies whose `X-Forwarded-For` names the client, joined by commas; without it the header is ignored',
    section: 'limits'
  }
} as const satisfies Readonly<Record<string, Setting>>
