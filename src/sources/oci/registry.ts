import { sha256 } from '../../core/shared/digest.ts'
import type { JsonObject } from '../../core/shared/json.ts'
import type { Environment } from '../../operator/setting.ts'
import { DIGEST, isAtLoopback } from '../address/address.ts'
import type { OciSource } from '../address/source-kind.ts'
import { parseObject, readBody, saveBody } from '../http/body.ts'
import { type HttpAnswer, type HttpRequest, send } from '../http/http-client.ts'
import { basic, readSecret, type RequestHeaders } from '../secrets.ts'
import { SourceError } from '../source-error.ts'
import { dockerCredentials } from './docker-credentials.ts'

const MAX_MANIFEST_BYTES = 4 * 1_048_576

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json', 'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json', 'application/vnd.docker.distribution.manifest.v2+json'
].join(', ')

/** An OCI descriptor: a reference to bytes of known digest and size. */
export interface Descriptor {
  readonly digest: string
  readonly size: number
}

export type Registry = ReturnType<typeof createRegistry>

/** Reads one repository of a registry over the distribution protocol. */
export function createRegistry (source: OciSource, env: Environment, signal: AbortSignal) {
  const { registry, repository, auth = {} } = source
  const protocol = isAtLoopback(new URL(`https://${registry}`)) ? 'http' : 'https'
  const host = registry === 'docker.io' ? 'registry-1.docker.io' : registry
  const base = new URL(`${protocol}://${host}/v2/${repository}`)
  let credentials: RequestHeaders = {}

  return {
    /** Asks for the digest behind a tag, which counts as no pull. */
    async digestOf (reference: string): Promise<string> {
      const answer = await ask(`/manifests/${reference}`, 'HEAD', MANIFEST_TYPES)
      const digest = String(answer.headers['docker-content-digest'])
      if (DIGEST.test(digest)) return digest
      const manifest = await ask(`/manifests/${reference}`, 'GET', MANIFEST_TYPES)
      return sha256(await readBody(manifest, MAX_MANIFEST_BYTES))
    },

    /** Gets a manifest, and checks that its bytes have this digest. */
    async manifest (digest: string): Promise<JsonObject> {
      const answer = await ask(`/manifests/${digest}`, 'GET', MANIFEST_TYPES)
      const bytes = await readBody(answer, MAX_MANIFEST_BYTES)
      requireSame(sha256(bytes), digest)
      const manifest = parseObject(bytes.toString(), 'the manifest of the artifact')
      const { mediaType = '', manifests, layers } = manifest
      const [declared = ''] = (answer.headers['content-type'] ?? '').split(';', 1)
      const isOther = mediaType !== '' && declared.startsWith('application/vnd.') && declared.trim() !== mediaType
      // The same bytes must not be a manifest to one reader and an index to another.
      if (!isOther && (manifests === undefined || layers === undefined)) return manifest
      const which = 'both an index and an image, or of another type than the registry says'
      throw new SourceError('bad_answer', `the manifest of the artifact is ambiguous: ${which}`)
    },

    async saveBlob ({ digest, size }: Descriptor, path: string): Promise<void> {
      const { sha256 } = await saveBody(await ask(`/blobs/${digest}`, 'GET', '*/*'), path, size)
      requireSame(`sha256:${sha256}`, digest)
    }
  }

  async function ask (path: string, method: 'GET' | 'HEAD', type: string): Promise<HttpAnswer> {
    const request: HttpRequest = { url: `${base.href}${path}`, method, headers: { accept: type }, signal, env }
    const answer = await send({ ...request, accept: [401], credentials })
    if (answer.status !== 401) return answer
    answer.body.destroy()
    credentials = await logIn(answer.headers['www-authenticate'] ?? '', answer.isInside)
    return await send({ ...request, credentials })
  }

  /** Gets a token of the realm that the registry names, or returns the credentials where it asks for them. */
  async function logIn (challenge: string, isInside: boolean): Promise<RequestHeaders> {
    const secret = await readSecret(auth, env)
    const own = secret === undefined
      ? await dockerCredentials(registry, env, signal)
      : basic(auth.username ?? 'token', secret)
    if (!/^bearer /i.test(challenge)) return own
    const pairs = challenge.matchAll(/\b(\w+)="([^"]*)"/g)
    const named = Object.fromEntries(Array.from(pairs, ([, key = '', value = '']) => [key, value]))
    const { realm = '', service, scope = `repository:${repository}:pull` } = named
    const url = URL.canParse(realm) ? new URL(realm) : undefined
    const isHere = url?.protocol === 'http:' && isAtLoopback(url) && isAtLoopback(base)
    if (url === undefined || (url.protocol !== 'https:' && !isHere)) {
      throw new SourceError('bad_answer', 'the registry names no https:// address for its tokens')
    }
    if (service !== undefined) url.searchParams.set('service', service)
    url.searchParams.set('scope', scope)
    const answer = await send({
      url: url.href,
      signal,
      env,
      mayBeInside: isInside || url.host === base.host,
      // The registry's answer names the realm, so a realm in another domain gets no credentials.
      credentials: mayHaveCredentials(url.hostname, base.hostname) ? own : {}
    })
    const bytes = await readBody(answer, MAX_MANIFEST_BYTES)
    const granted = parseObject(bytes.toString(), 'the token of the registry')
    const bearer = granted['token'] ?? granted['access_token']
    if (typeof bearer === 'string' && /^[\x21-\x7e]+$/.test(bearer)) return { authorization: `Bearer ${bearer}` }
    throw new SourceError('auth_failed', 'the registry sent no token')
  }
}

function requireSame (found: string, digest: string): void {
  if (found === digest) return
  throw new SourceError('digest_mismatch', `the registry sent bytes that do not match ${digest}`)
}

/** Known realms on another host than their registry, of the same operator. */
const REALMS: Readonly<Record<string, string>> = {
  'registry-1.docker.io': 'auth.docker.io',
  'registry.gitlab.com': 'gitlab.com'
}

/** Whether a realm may get the registry's credentials: it has the same host, or is known for the registry. */
export function mayHaveCredentials (realm: string, registry: string): boolean {
  return realm === registry || REALMS[registry] === realm
}
