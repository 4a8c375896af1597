import { sha256 } from '../../core/shared/digest.ts'
import type { JsonObject } from '../../core/shared/json.ts'
import type { Environment } from '../../config/setting.ts'
import { isLoopback } from '../../http/request/hosts.ts'
import { DIGEST, isAtLoopback } from '../address/parts.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import {
  basic, type HttpAnswer, type HttpRequest, parseObject, readBody, type RequestHeaders, saveBody, send
} from '../http/http-client.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'
import { dockerCredentials } from './docker-credentials.ts'

const MAX_MANIFEST_BYTES = 4 * 1_048_576

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json', 'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json', 'application/vnd.docker.distribution.manifest.v2+json'
].join(', ')

/** What a registry points at: bytes of a known digest and size. */
export interface Descriptor {
  readonly digest: string
  readonly size: number
}

export interface Repository {
  /** Host and port. */
  readonly registry: string
  readonly repository: string
  readonly auth?: SourceAuth
}

/** One repository of a registry, read over the distribution protocol. */
export class Registry {
  readonly #source: Repository
  readonly #env: Environment
  readonly #base: string
  readonly #signal: AbortSignal
  #credentials: RequestHeaders = {}

  constructor (source: Repository, env: Environment, signal: AbortSignal) {
    const { registry, repository } = source
    this.#source = source
    this.#env = env
    const protocol = isAtLoopback(new URL(`https://${registry}`)) ? 'http' : 'https'
    const host = registry === 'docker.io' ? 'registry-1.docker.io' : registry
    this.#base = `${protocol}://${host}/v2/${repository}`
    this.#signal = signal
  }

  /** The digest behind a tag. Asking for it counts as no pull. */
  async digestOf (reference: string): Promise<string> {
    const answer = await this.#send(`/manifests/${reference}`, 'HEAD', MANIFEST_TYPES)
    const digest = String(answer.headers['docker-content-digest'])
    if (DIGEST.test(digest)) return digest
    const manifest = await this.#send(`/manifests/${reference}`, 'GET', MANIFEST_TYPES)
    return sha256(await readBody(manifest, MAX_MANIFEST_BYTES))
  }

  /** A manifest whose bytes have this digest. */
  async manifest (digest: string): Promise<JsonObject> {
    const answer = await this.#send(`/manifests/${digest}`, 'GET', MANIFEST_TYPES)
    const bytes = await readBody(answer, MAX_MANIFEST_BYTES)
    if (sha256(bytes) !== digest) {
      throw new SourceError('digest_mismatch', `the registry gives other bytes than those of ${digest}`)
    }
    const manifest = parseObject(bytes.toString(), 'the manifest of the artifact')
    checkType(manifest, answer.headers['content-type'])
    return manifest
  }

  async saveBlob ({ digest, size }: Descriptor, path: string): Promise<void> {
    const saved = await saveBody(await this.#send(`/blobs/${digest}`, 'GET', '*/*'), path, size)
    if (`sha256:${saved.sha256}` !== digest || saved.size !== size) {
      throw new SourceError('digest_mismatch', `the registry gives other bytes than those of ${digest}`)
    }
  }

  async #send (path: string, method: 'GET' | 'HEAD', accept: string): Promise<HttpAnswer> {
    const request: HttpRequest = {
      url: `${this.#base}${path}`, method, headers: { accept }, signal: this.#signal, env: this.#env, accept: [401]
    }
    const answer = await send({ ...request, credentials: this.#credentials })
    if (answer.status !== 401) return answer
    answer.body.destroy()
    this.#credentials = await this.#logIn(answer.headers['www-authenticate'] ?? '', answer.isInside)
    return await send({ ...request, accept: [], credentials: this.#credentials })
  }

  /** A token of the realm that the registry names, or the credentials themselves where it asks for them. */
  async #logIn (challenge: string, isInside: boolean): Promise<RequestHeaders> {
    const credentials = await this.#ownCredentials()
    if (!/^bearer /i.test(challenge)) return credentials
    const pairs = challenge.matchAll(/\b(\w+)="([^"]*)"/g)
    const named = Object.fromEntries(Array.from(pairs, ([, key = '', value = '']) => [key, value]))
    const { realm = '', service, scope = `repository:${this.#source.repository}:pull` } = named
    if (!URL.canParse(realm)) {
      throw new SourceError('bad_answer', 'the registry asks for a token, and does not say where')
    }
    const url = new URL(realm)
    const base = new URL(this.#base)
    const isHere = url.protocol === 'http:' && isLoopback(url.hostname) && isLoopback(base.hostname)
    if (url.protocol !== 'https:' && !isHere) {
      throw new SourceError('bad_answer', 'the registry gives tokens over an address that is not https://')
    }
    if (service !== undefined) url.searchParams.set('service', service)
    url.searchParams.set('scope', scope)
    // Whoever answers for the registry names the realm: another domain gets no credentials.
    const answer = await send({
      url: url.href,
      signal: this.#signal,
      env: this.#env,
      mayBeInside: isInside || url.host === base.host,
      credentials: mayHaveCredentials(url.hostname, base.hostname) ? credentials : {}
    })
    const granted = parseObject((await readBody(answer)).toString(), 'the token of the registry')
    const bearer = granted['token'] ?? granted['access_token']
    if (typeof bearer !== 'string' || !/^[\x21-\x7e]+$/.test(bearer)) {
      throw new SourceError('auth_failed', 'the registry gives no token')
    }
    return { authorization: `Bearer ${bearer}` }
  }

  async #ownCredentials (): Promise<RequestHeaders> {
    const { auth = {}, registry } = this.#source
    const secret = await readSecret(auth, this.#env)
    if (secret !== undefined) return basic(auth.username ?? 'token', secret)
    return await dockerCredentials(registry, this.#env, this.#signal)
  }
}

/** The same bytes must not be a manifest to one reader and an index to another. */
function checkType ({ mediaType, manifests, layers }: JsonObject, header = ''): void {
  const [declared = ''] = header.split(';', 1)
  const isOther = mediaType !== undefined && declared.startsWith('application/vnd.') && declared.trim() !== mediaType
  if (isOther || (manifests !== undefined && layers !== undefined)) {
    const which = 'both an index and an image, or of another type than the registry says'
    throw new SourceError('bad_answer', `the manifest of the artifact is ambiguous: ${which}`)
  }
}

/** Hosts of realms that a registry on another host publishes: both belong to the same operator. */
const REALMS: Readonly<Record<string, string>> = {
  'registry-1.docker.io': 'auth.docker.io',
  'registry.gitlab.com': 'gitlab.com'
}

/**
 * Whether the credentials of a registry may be sent to a realm: to its own host, or to the one that is known for it.
 */
export function mayHaveCredentials (realm: string, registry: string): boolean {
  return realm === registry || REALMS[registry] === realm
}
