import { stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyBaseLogger, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fastifyCookie from '@fastify/cookie'
import fp from 'fastify-plugin'
import { FollowedFile } from '../operator/followed-file.ts'
import type { Prepared } from '../operator/prepared.ts'
import type { Environment } from '../operator/setting.ts'
import type { View } from '../core/view.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { type OnAccessEnd, type Principal, READ_SCOPE } from '../http/callers.ts'
import { addVary } from '../http/headers.ts'
import { HttpProblem, toInstance } from '../http/problem.ts'
import { readBody } from '../sources/http/body.ts'
import { send } from '../sources/http/http-client.ts'
import { Authenticator } from './authenticator.ts'
import { addMetadata, metadataUrl, type Refusal, type RefusalReason, REFUSALS, refuse } from './challenge.ts'
import type { ReadJson } from './issuer-keys.ts'
import { openLink } from './links.ts'
import { Policy } from './policy.ts'
import { sessionToken } from './session.ts'

declare module 'fastify' {
  interface FastifyRequest {
    admission: Admission | undefined
  }
}

interface AccessOptions {
  readonly file: string
  readonly skills: SkillManager
  readonly log: FastifyBaseLogger
  /** Variables that name the proxies for requests to issuers. */
  readonly env: Environment
  readonly basePath: string
  /** Public URL of the service, without a slash at the end. */
  readonly publicUrl: string | undefined
}

/** The policy and the view of a request. It keeps them when the access file changes. */
interface Admission {
  readonly authenticator: Authenticator
  readonly view: View
}

/** Paths of the search for an authorization server (RFC 8414 §3.1): a 401 would mislead clients with a token. */
const OAUTH_DISCOVERY = /\/\.well-known\/(?:oauth-|openid-configuration)/

/** Largest document of an issuer, in bytes. */
const MAX_ISSUER_BYTES = 1_048_576

const WRITABLE_BY_OTHERS = 0o002
/** Longest delay that `setTimeout` accepts, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647

/** @throws ConfigError of one line when the file cannot be used */
export async function openAccess (options: AccessOptions): Promise<Access> {
  const { file: path, log, skills, publicUrl } = options
  const file = await FollowedFile.open({ name: 'the access file', setting: 'ACCESS_FILE or --access', path, log },
    (_path, text) => new Policy(path, text, skills.rootNames, publicUrl))
  const { mode } = await stat(path)
  if ((mode & WRITABLE_BY_OTHERS) !== 0) log.warn({ path }, 'access file is writable by every user of this machine')
  return new Access(options, file)
}

/** Authenticates requests by the access file, and gives each the view of its caller. */
export class Access {
  readonly everything: View
  /** A view without skills, for requests whose token was not checked yet. */
  readonly nothing: View
  readonly refusals = new Map<RefusalReason, number>(Object.values(REFUSALS).map(({ reason }) => [reason, 0]))
  readonly file: FollowedFile<Policy>
  readonly #options: AccessOptions
  /** Digests of the secrets in the paths of requests for private discovery. */
  readonly #links = new WeakMap<IncomingMessage, string>()
  /** Functions that end the open streams. */
  readonly #streams = new Set<() => void>()
  /** The one for the policy in force. */
  #authenticator: Authenticator

  constructor (options: AccessOptions, file: FollowedFile<Policy>) {
    const { skills, log, env } = options
    this.#options = options
    this.file = file
    this.everything = skills
    this.nothing = skills.createView('nothing', () => undefined)
    const readJson = jsonReader(env)
    this.#authenticator = new Authenticator(file.value, log, readJson)
    file.on('changed', (policy) => {
      this.#authenticator = new Authenticator(policy, log, readJson, this.#authenticator.keys)
      // Clients connect again, and are admitted by the new policy.
      for (const end of [...this.#streams]) end()
    })
  }

  /**
   * Reads the access file for roots of these names.
   * @throws ConfigError when it cannot be used with them
   */
  async prepare (roots: readonly string[]): Promise<Prepared> {
    const isOther = !isDeepStrictEqual(roots, this.file.value.roots)
    const { publicUrl } = this.#options
    return await this.file.prepare((path, text) => new Policy(path, text, roots, publicUrl), isOther)
  }

  readonly skillsOf = ({ admission }: FastifyRequest): View => admission?.view ?? this.nothing

  readonly onAccessEnd: OnAccessEnd = ({ principal, admission }, end) => {
    const leftMs = Math.min((principal?.expiresAt ?? Infinity) - Date.now(), MAX_TIMER_MS)
    const stop = (): void => {
      clearTimeout(timer)
      this.#streams.delete(finish)
    }
    const finish = (): void => {
      stop()
      end()
    }
    const timer = setTimeout(finish, leftMs).unref()
    this.#streams.add(finish)
    // The file may have changed since the caller was admitted.
    if (admission?.authenticator !== this.#authenticator) finish()
    return stop
  }

  /** Finds the caller that a token of the access file belongs to. */
  findToken (token: string): Principal | Refusal {
    return this.#authenticator.findToken(token)
  }

  readonly rewriteUrl = (request: IncomingMessage): string => {
    const { target, link } = openLink(request, this.#options.basePath, this.file.value.links)
    if (link !== undefined) this.#links.set(request, link)
    // Fastify keeps the original target here, which has the secret.
    Object.assign(request, { originalUrl: target })
    return target
  }

  /** The number of issuers whose keys could not be read at the last attempt. */
  get unreachableIssuers (): number {
    return this.#authenticator.keys.filter(({ isUnavailable }) => isUnavailable).length
  }

  readonly plugin: FastifyPluginAsync = fp(async (app) => {
    app.decorateRequest('admission', undefined)
    // `sessionToken` parses the cookies of requests for pages; others need none.
    await app.register(fastifyCookie, { hook: false })
    app.addHook('onClose', async () => { this.file.close() })
    app.addHook('onRequest', (request, reply, next) => { this.#authenticate(request, reply, next) })
    // Overrides the Cache-Control of routes, except open ones: they give everybody the same.
    app.addHook('onSend', (request, reply, payload, next) => {
      const isOwn = request.routeOptions.config.isOpen !== true
      if (isOwn) reply.header('cache-control', privately(reply.getHeader('cache-control')))
      next(null, payload)
    })
    const { basePath, publicUrl } = this.#options
    if (publicUrl !== undefined) addMetadata(app, basePath, publicUrl, () => this.file.value.issuers)
  }, { name: 'access' })

  /** Turns 404 into 401 for callers without credentials: a hidden skill and an absent one look the same. */
  readonly translate = (error: unknown, { principal }: FastifyRequest): unknown => {
    const isMissing = (error instanceof SkillError && error.code === 'skill_not_found') ||
      (error instanceof HttpProblem && error.code === 'artifact_not_found')
    return isMissing && principal?.kind === 'anonymous' ? this.#refusal('unauthenticated') : error
  }

  /** Finds the caller of a request. Most are known at once. */
  #authenticate (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void {
    const authenticator = this.#authenticator
    const link = this.#links.get(request.raw)
    if (link !== undefined) reply.header('referrer-policy', 'no-referrer')
    addVary(reply, authenticator.policy.vary)
    const session = sessionToken(request)
    if (request.routeOptions.config.isPage === true) addVary(reply, 'Cookie')
    const found = authenticator.authenticate(request.raw, link, session)
    const admit = (found: Principal | Refusal): void => { this.#admit(request, reply, authenticator, found) }
    if (found instanceof Promise) {
      found.then(admit).then(() => { next() }, next)
    } else {
      admit(found)
      next()
    }
  }

  /** @throws {HttpProblem} when the request is refused; otherwise its principal is set */
  #admit (
    request: FastifyRequest, reply: FastifyReply, authenticator: Authenticator, found: Principal | Refusal
  ): void {
    const { isOpen = false, scope = READ_SCOPE } = request.routeOptions.config
    if (typeof found === 'string') {
      if (isOpen || (request.is404 && OAUTH_DISCOVERY.test(toInstance(request.url)))) return
      throw this.#refusal(found)
    }
    reply.header('cache-control', 'private, no-cache')
    const isAllowed = isOpen || found.scopes.has(scope)
    // A caller without credentials gets 401, not 403: it may have credentials that are good.
    if (!isAllowed && found.kind === 'anonymous') throw this.#refusal('unauthenticated')
    // Set for a refused caller too: logs and limits need it.
    request.principal = found
    if (!isAllowed) throw this.#refusal('insufficient_scope', scope)
    const view = found.scopes.has(READ_SCOPE) ? this.#viewOf(found, authenticator.policy) : this.nothing
    request.admission = { authenticator, view }
  }

  #viewOf ({ view: key }: Principal, policy: Policy): View {
    const view = policy.views.get(key) ?? this.#options.skills.createView(key, policy.grantsOf(key))
    policy.views.set(key, view)
    return view
  }

  #refusal (refusal: Refusal, scope: string = READ_SCOPE): HttpProblem {
    const { reason } = REFUSALS[refusal]
    this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1)
    const { publicUrl } = this.#options
    const hasIssuers = publicUrl !== undefined && this.file.value.issuers.length > 0
    return refuse(refusal, hasIssuers ? metadataUrl(publicUrl) : undefined, scope)
  }
}

/** Makes the function that reads JSON of issuers, through the proxies of the environment and without redirects. */
function jsonReader (env: Environment): ReadJson {
  return async (url, signal) => {
    const answer = await send({ url, env, signal, maxRedirects: 0 })
    return JSON.parse(String(await readBody(answer, MAX_ISSUER_BYTES))) as unknown
  }
}

function privately (control: unknown): string {
  const directives = control === undefined ? 'no-cache' : String(control)
  if (directives.includes('private') || directives.includes('no-store')) return directives
  return `private, ${directives.replace(/\bpublic,? */, '')}`
}
