import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet } from 'jose'
import type { CoreLog } from '../core/shared/log.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import type { IssuerEntry } from './policy.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

/** Pause after a failed attempt to read the keys of an issuer, in milliseconds. `Retry-After` is as long. */
const COOLDOWN_MS = 5_000

type KeysEntry = Pick<IssuerEntry, 'issuer' | 'jwks_uri'>

export type ReadJson = (url: string, signal: AbortSignal) => Promise<unknown>

export class IssuerUnavailable extends Error {}

/**
 * Reads the public keys of an issuer when jose asks for them, and first the metadata that name their address. While
 * they cannot be read, the last ones stay in use.
 */
export class IssuerKeys {
  /** Finds the key of a token. Throws IssuerUnavailable, or a JOSEError when no key fits. */
  readonly find: ReturnType<typeof createRemoteJWKSet>
  /** Whether the last attempt to read the keys failed. */
  isUnavailable = false
  readonly #entry: KeysEntry
  readonly #log: CoreLog
  readonly #readJson: ReadJson
  #failedAt = -Infinity

  constructor (entry: KeysEntry, log: CoreLog, readJson: ReadJson) {
    const { issuer, jwks_uri: uri } = this.#entry = entry
    this.#log = log
    this.#readJson = readJson
    const { protocol, host } = new URL(uri ?? issuer)
    const isExposed = protocol === 'http:' && !isLoopback(hostOf(host) ?? '')
    if (isExposed) log.warn({ issuer }, 'issuer uses http://: an attacker on the network can replace its keys')
    const read = async (_url: string, { signal }: { readonly signal: AbortSignal }) =>
      Response.json(await this.#read(signal))
    this.find = createRemoteJWKSet(new URL(uri ?? issuer), { [customFetch]: read })
    // Reads them at the start, so that the log reports an issuer that does not answer. The next token tries again.
    this.find.reload().catch(() => {})
  }

  isOf ({ issuer, jwks_uri: uri }: KeysEntry): boolean {
    return issuer === this.#entry.issuer && uri === this.#entry.jwks_uri
  }

  /** Reads the keys again, unless they were read a moment ago. Returns whether they were. */
  async refresh (): Promise<boolean> {
    if (this.find.coolingDown) return false
    await this.find.reload()
    return true
  }

  async #read (signal: AbortSignal): Promise<JSONWebKeySet> {
    const { issuer } = this.#entry
    if (performance.now() - this.#failedAt >= COOLDOWN_MS) {
      try {
        const keys = await this.#readJson(await this.#findUri(signal), signal) as JSONWebKeySet
        // Throws if the document is not a key set.
        createLocalJWKSet(keys)
        if (keys.keys.length === 0) throw new Error('the set of keys is empty')
        if (this.isUnavailable) this.#log.info({ issuer }, 'the keys of the issuer are readable again')
        this.isUnavailable = false
        return keys
      } catch (error) {
        this.#failedAt = performance.now()
        const details = { issuer, reason: reasonOf(error) }
        const message = 'cannot read the keys of the issuer; still using the last good ones'
        if (!this.isUnavailable) this.#log.warn(details, message)
        this.isUnavailable = true
      }
    }
    const last = this.find.jwks()
    if (last === undefined) throw new IssuerUnavailable()
    return last
  }

  /** Returns the URL of the keys: the `jwks_uri` of the access file, or that of the present metadata. */
  async #findUri (signal: AbortSignal): Promise<string> {
    const { issuer, jwks_uri: uri } = this.#entry
    return uri ?? await Promise.any(metadataOf(issuer).map(async (address) =>
      keysAddress(await this.#readJson(address, signal), address, issuer)))
  }
}

/**
 * Returns the URLs at which an issuer may have its metadata: OpenID Connect appends to the path, RFC 8414 §3.1 and §5
 * insert before it. All are requested at once, so that one without an answer causes no delay.
 */
function metadataOf (issuer: string): readonly string[] {
  const base = issuer.replace(/\/$/, '')
  const { origin, pathname } = new URL(base)
  const before = pathname === '/' ? [] : [`${origin}${OAUTH}${pathname}`, `${origin}${OPENID}${pathname}`]
  return [`${base}${OPENID}`, `${base}${OAUTH}`, ...before]
}

/** @throws Error for metadata of another issuer, or for keys at `http://`, which anybody on the network can replace */
function keysAddress (document: unknown, address: string, issuer: string): string {
  const metadata = document as { issuer?: unknown, jwks_uri?: unknown } | null
  // RFC 8414 §3.3.
  if (metadata?.issuer !== issuer || typeof metadata.jwks_uri !== 'string') {
    throw new Error(`the metadata at ${address} is of another issuer, or has no jwks_uri`)
  }
  const { href, protocol } = new URL(metadata.jwks_uri)
  if (protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))) return href
  throw new Error(`the jwks_uri in ${address} is not an https:// address`)
}

function reasonOf (error: unknown): string {
  // The first address of the metadata is the usual one.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : String(first)
}
