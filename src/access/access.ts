import type { FastifyBaseLogger, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { FollowedFile } from '../config/files/followed-file.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillService } from '../core/service.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { addVary } from '../http/headers.ts'
import { HttpProblem, toInstance } from '../http/problem.ts'
import { type Authentication, Authenticator } from './authenticator.ts'
import { Challenges } from './challenge.ts'
import { Links } from './links.ts'
import { addMetadata, metadataUrl } from './metadata.ts'
import { CallerViews } from './views.ts'
import { Policy, type Proof, READ_SCOPE, type Refusal, refused } from './policy.ts'
import { type AccessDoors, type Principal, REFUSAL_REASONS, type RefusalReason } from '../http/callers.ts'

export interface AccessOptions {
  /** Path of the access file. */
  readonly file: string
  readonly skills: SkillManager
  readonly log: FastifyBaseLogger
  readonly basePath: string
  /** The address of the service as its users type it, without a slash at the end. */
  readonly publicUrl: string | undefined
}

/**
 * Clients look here for an authorization server, in front of the path of the service or behind it (RFC 8414 §3.1). Those with a
 * token of their own must not be led astray by a 401.
 */
const OAUTH_DISCOVERY = /\/\.well-known\/(?:oauth-|openid-configuration)/

const REASONS = {
  unauthenticated: 'missing',
  invalid_credentials: 'invalid',
  invalid_token: 'invalid',
  token_expired: 'expired',
  wrong_audience: 'audience',
  issuer_unavailable: 'issuer'
} as const satisfies Readonly<Record<Refusal, RefusalReason>>

/** How an authenticated caller has proved who it is, and what it sees. */
interface Caller {
  readonly proof: Proof
  readonly view: SkillService
}

const PRIVATE = 'private, no-cache'

/** Who asks and what they see: one policy at a time, one principal for each request. */
export class Access implements AccessDoors {
  readonly everything: SkillService
  /** What a request sees before its token is checked. */
  readonly nothing: SkillService
  readonly refusals = new Map<RefusalReason, number>(REFUSAL_REASONS.map((reason) => [reason, 0]))
  readonly file: FollowedFile<Policy>
  readonly #options: AccessOptions
  readonly #views: CallerViews
  readonly #links: Links
  readonly #callers = new WeakMap<Principal, Caller>()
  #authenticator: Authenticator
  #challenges: Challenges

  /** @throws ConfigError `FILE:LINE: KEY …` */
  static async open (options: AccessOptions): Promise<Access> {
    const { file, skills, basePath, publicUrl } = options
    const roots = skills.rootNames
    const resource = publicUrl === undefined ? undefined : `${publicUrl}/mcp`
    return new Access(options, await FollowedFile.open(file, (text) => Policy.parse(file, text, { roots, resource })), basePath)
  }

  private constructor (options: AccessOptions, file: FollowedFile<Policy>, basePath: string) {
    const { skills, log } = options
    this.#options = options
    this.file = file
    this.everything = skills
    this.nothing = skills.createView('nothing', new Map())
    this.#views = new CallerViews(skills, file.value)
    this.#links = new Links(basePath, (digest) => this.#policy.principalOf({ kind: 'link', digest }) !== undefined)
    this.#authenticator = new Authenticator(file.value, log)
    this.#challenges = this.#createChallenges()
    this.#warn()
    // Patterns can be judged once the skills that they could match are known.
    skills.available().then(() => { this.#warnOfPatterns() }, () => {})
    file.on('changed', (policy) => { this.#use(policy) })
    file.on('failed', (error) => {
      if (error === undefined) log.info({ file: file.path }, 'the access file can be used again')
      else log.error({ file: file.path, problem: error.message }, 'the access file cannot be used; the last good one stays in force')
    })
  }

  close (): void {
    this.file.close()
    this.#authenticator.close()
  }

  /** The file may have changed since the request came: its body may have taken long. */
  readonly skillsOf = ({ principal }: FastifyRequest): SkillService => {
    const caller = principal && this.#callers.get(principal)
    if (caller === undefined) return this.nothing
    const present = this.#policy.principalOf(caller.proof)
    return present?.scopes.has(READ_SCOPE) === true ? this.#views.of(present.view) : this.nothing
  }

  readonly whileAllowed = ({ principal }: FastifyRequest, end: () => void): () => void => {
    const caller = principal && this.#callers.get(principal)
    if (caller !== undefined) return this.#views.watch(caller.proof, caller.view, end)
    if (principal !== undefined) end()
    return () => {}
  }

  rewriteUrl (request: FastifyRequest['raw']): string {
    return this.#links.rewrite(request)
  }

  remark (): string | undefined {
    return this.file.remark('the access file')
  }

  readonly plugin: FastifyPluginAsync = fp(async (app) => {
    app.addHook('onClose', async () => { this.close() })
    app.addHook('onRequest', (request, reply, next) => {
      const { raw } = request
      if (this.#links.digestOf(raw) !== undefined) reply.header('referrer-policy', 'no-referrer')
      const authentication = this.#authenticate(request)
      // Who has left meanwhile gets no further: what a request takes is given back when its response closes.
      if (authentication instanceof Promise) authentication.then((found) => { if (!reply.raw.destroyed) next(this.#admit(request, reply, found)) }, next)
      else next(this.#admit(request, reply, authentication))
    })
    // The last word on caches, whatever a route has said. An open route gives everybody the same, unless it says `no-store`.
    app.addHook('onSend', (request, reply, payload, next) => {
      const control = reply.getHeader('cache-control')
      // Fastify makes the options of a route anew for each question.
      if (control !== PRIVATE && request.routeOptions.config.isOpen !== true) reply.header('cache-control', privately(control))
      next(null, payload)
    })
    addMetadata(app, { basePath: this.#options.basePath, publicUrl: this.#options.publicUrl, issuers: () => this.#policy.issuers })
  }, { name: 'access' })

  /** Without credentials, a hidden skill and an absent one get the same 401: neither can be told from the other. */
  translate (error: unknown, { principal }: FastifyRequest): unknown {
    const isMissing = (error instanceof SkillError && error.code === 'skill_not_found') || (error instanceof HttpProblem && error.code === 'artifact_not_found')
    return isMissing && principal?.kind === 'anonymous' ? this.#refuse('unauthenticated') : error
  }

  get issuersAway (): number {
    return this.#authenticator.issuersAway
  }

  get #policy (): Policy {
    return this.file.value
  }

  #authenticate ({ raw }: FastifyRequest): Authentication | Promise<Authentication> {
    const digest = this.#links.digestOf(raw)
    if (digest === undefined && !this.#links.hasTokenInQuery(raw)) return this.#authenticator.authenticate(raw)
    // Refused: two credentials, or one in the URL, which is logged.
    if (digest === undefined || raw.headers.authorization !== undefined) return refused('invalid_credentials')
    const expiresAt = this.#policy.principalOf({ kind: 'link', digest })?.expiresAt ?? Infinity
    return expiresAt > Date.now() ? { kind: 'link', digest } : refused('unauthenticated')
  }

  /** Why the request may not go on, if so. Otherwise its principal is set. */
  #admit (request: FastifyRequest, reply: FastifyReply, authentication: Authentication): HttpProblem | undefined {
    const { isOpen = false, scope = READ_SCOPE } = request.routeOptions.config
    const principal = authentication.kind === 'refused' ? undefined : this.#policy.principalOf(authentication)
    addVary(reply, this.#policy.vary)
    if (principal === undefined || authentication.kind === 'refused') {
      const isOpenToAll = isOpen || (request.is404 && OAUTH_DISCOVERY.test(toInstance(request.url)))
      return isOpenToAll ? undefined : this.#refuse(authentication.kind === 'refused' ? authentication.refusal : 'unauthenticated')
    }
    reply.header('cache-control', PRIVATE)
    if (!isOpen && !principal.scopes.has(scope)) {
      // A caller who has sent no credentials may have some that admit it.
      if (principal.kind === 'anonymous') return this.#refuse('unauthenticated')
      // For logs and limits.
      request.principal = principal
      this.#count('scope')
      return this.#challenges.lacksScope(scope)
    }
    this.#callers.set(principal, { proof: authentication, view: this.#views.of(principal.view) })
    request.principal = principal
    return undefined
  }

  #refuse (refusal: Refusal): HttpProblem {
    this.#count(REASONS[refusal])
    return this.#challenges.refuse(refusal)
  }

  #count (reason: RefusalReason): void {
    this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1)
  }

  #use (policy: Policy): void {
    this.#authenticator = new Authenticator(policy, this.#options.log, this.#authenticator)
    this.#challenges = this.#createChallenges()
    this.#views.usePolicy(policy)
    this.#options.log.info({ file: this.file.path, callers: policy.secretNames.length, rules: policy.rules.length }, 'the access file has changed and is in force')
    this.#warn()
    this.#warnOfPatterns()
  }

  #createChallenges (): Challenges {
    const { publicUrl } = this.#options
    return new Challenges(publicUrl === undefined || this.#policy.issuers.length === 0 ? undefined : metadataUrl(publicUrl))
  }

  #warn (): void {
    for (const problem of this.#policy.warnings) this.#options.log.warn({ problem }, 'the access file may not say what is meant')
  }

  #warnOfPatterns (): void {
    const { skills, log } = this.#options
    for (const problem of this.#policy.unfitPatterns((root) => skills.skillsIn(root))) log.warn({ problem }, 'the access file may not say what is meant')
  }
}

function privately (control: unknown): string {
  if (control === 'no-cache') return PRIVATE
  const directives = control === undefined ? 'no-cache' : String(control)
  return directives.includes('private') || directives.includes('no-store') ? directives : `private, ${directives.replace(/\bpublic,? */, '')}`
}
