import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet } from 'jose'
import type { CoreLog } from '../core/shared/log.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import type { IssuerEntry } from './policy.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

/** After a failure, an issuer is asked once in this time, in milliseconds. jose counts from the last success. */
const COOLDOWN_MS = 30_000

type KeysEntry = Pick<IssuerEntry, 'issuer' | 'jwks_uri'>

/** The keys of an issuer cannot be read. */
export class IssuerAway extends Error {}

/** The public keys of an issuer, read when jose wants to. While the issuer is away, the last ones stay in use. */
export class IssuerKeys {
  /** Finds the key of a token. Throws IssuerAway, or a JOSEError when no key fits. */
  readonly find: ReturnType<typeof createRemoteJWKSet>
  /** Whether the last attempt to read the keys failed. */
  isAway = false
  readonly #entry: KeysEntry
  readonly #log: CoreLog
  #uri: string | undefined
  #failedAt = -Infinity

  constructor (entry: KeysEntry, log: CoreLog) {
    const { issuer, jwks_uri: uri } = this.#entry = entry
    this.#uri = uri
    this.#log = log
    const { protocol, host } = new URL(uri ?? issuer)
    const isExposed = protocol === 'http:' && !isLoopback(hostOf(host) ?? '')
    if (isExposed) log.warn({ issuer }, 'anyone on the way to an issuer of tokens at http:// can replace its keys')
    const read = async (_url: string, options: RequestInit) => Response.json(await this.#read(options))
    this.find = createRemoteJWKSet(new URL(uri ?? issuer), { [customFetch]: read })
    // The log says at the start that an issuer does not answer; the next token asks again.
    this.find.reload().catch(() => {})
  }

  isOf ({ issuer, jwks_uri: uri }: KeysEntry): boolean {
    return issuer === this.#entry.issuer && uri === this.#entry.jwks_uri
  }

  async #read (options: RequestInit): Promise<JSONWebKeySet> {
    const { issuer } = this.#entry
    if (performance.now() - this.#failedAt >= COOLDOWN_MS) {
      try {
        this.#uri ??= await Promise.any(metadataOf(issuer).map((address) => readMetadata(address, issuer, options)))
        const keys = await readJson(this.#uri, options) as JSONWebKeySet
        // Throws for what is not a set of keys.
        createLocalJWKSet(keys)
        if (this.isAway) this.#log.info({ issuer }, 'the keys of an issuer of tokens can be read again')
        this.isAway = false
        return keys
      } catch (error) {
        this.#failedAt = performance.now()
        const details = { issuer, reason: reasonOf(error) }
        const message = 'cannot read the keys of an issuer of tokens; those that were read before stay in use'
        if (!this.isAway) this.#log.warn(details, message)
        this.isAway = true
      }
    }
    const last = this.find.jwks()
    if (last === undefined) throw new IssuerAway()
    return last
  }
}

/**
 * Addresses of an issuer's metadata: OpenID Connect appends to a path, RFC 8414 §3.1 and §5 put theirs before it. All
 * are asked: one that does not answer delays nobody.
 */
function metadataOf (issuer: string): readonly string[] {
  const base = issuer.replace(/\/$/, '')
  const { origin, pathname } = new URL(base)
  const before = pathname === '/' ? [] : [`${origin}${OAUTH}${pathname}`, `${origin}${OPENID}${pathname}`]
  return [`${base}${OPENID}`, `${base}${OAUTH}`, ...before]
}

async function readMetadata (address: string, issuer: string, options: RequestInit): Promise<string> {
  const metadata = await readJson(address, options) as { issuer?: unknown, jwks_uri?: unknown } | null
  // RFC 8414 §3.3.
  if (metadata?.issuer !== issuer || typeof metadata.jwks_uri !== 'string') {
    throw new Error(`${address} has the metadata of another issuer, or names no keys`)
  }
  const { href, protocol } = new URL(metadata.jwks_uri)
  // Anybody on the way could put keys of their own into an answer that is not encrypted.
  if (protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))) return href
  throw new Error(`${address} names keys at an address that is not https://`)
}

async function readJson (url: string, { headers, signal }: RequestInit): Promise<unknown> {
  const response = await fetch(url, { headers, signal, redirect: 'error' } as RequestInit)
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
  return await response.json()
}

function reasonOf (error: unknown): string {
  // Of all addresses of metadata, the first one is the usual one.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { message, cause } = first instanceof Error ? first : new Error(String(first))
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
