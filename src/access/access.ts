import { stat } from 'node:fs/promises'
import type { FastifyBaseLogger, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { isWithin, realPathOf } from '../config/files/files.ts'
import { FollowedFile } from '../config/files/followed-file.ts'
import { readSetting } from '../config/files/yaml-file.ts'
import { ConfigError } from '../config/setting.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillService } from '../core/service.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { type AccessDoors, type Principal, REFUSAL_REASONS, type RefusalReason } from '../http/callers.ts'
import { addVary } from '../http/headers.ts'
import { HttpProblem, toInstance } from '../http/problem.ts'
import { type Authentication, Authenticator } from './authenticator.ts'
import { lacksScope, refuse } from './challenge.ts'
import { Links } from './links.ts'
import { addMetadata, metadataUrl } from './metadata.ts'
import { type Caller, Policy, READ_SCOPE, type Refusal, refused } from './policy.ts'
import { CallerViews } from './views.ts'

export interface AccessOptions {
  /** Path of the access file. */
  readonly file: string
  readonly skills: SkillManager
  readonly log: FastifyBaseLogger
  readonly basePath: string
  /** The address of the service as its users type it, without a slash at the end. */
  readonly publicUrl: string | undefined
}

/** Where clients look for an authorization server (RFC 8414 §3.1): a 401 would lead those with a token astray. */
const OAUTH_DISCOVERY = /\/\.well-known\/(?:oauth-|openid-configuration)/

const REASONS = {
  unauthenticated: 'missing',
  invalid_credentials: 'invalid',
  invalid_token: 'invalid',
  token_expired: 'expired',
  wrong_audience: 'audience',
  issuer_unavailable: 'issuer'
} as const satisfies Readonly<Record<Refusal, RefusalReason>>

const PRIVATE = 'private, no-cache'
const WRITABLE_BY_OTHERS = 0o002

/**
 * Opens the access file.
 * @param folders what is served, and the folders that links may lead into
 * @throws ConfigError of one line when the file cannot be used
 */
export async function openAccess (options: AccessOptions, folders: readonly string[]): Promise<Access> {
  const { file, log } = options
  // What lies among skills is served to those who see them, and may be written by their authors.
  const path = await realPathOf(file)
  for (const folder of folders) {
    if (!isWithin(path, await realPathOf(folder))) continue
    const remedy = 'move the access file out of all folders of skills'
    throw new ConfigError(`${file} is inside ${folder}, whose files are served: ${remedy}`)
  }
  const { mode } = await stat(path).catch(() => ({ mode: 0 }))
  if ((mode & WRITABLE_BY_OTHERS) !== 0) log.warn({ file }, 'every user of this machine can write the access file')
  return await readSetting('ACCESS_FILE or --access', Access.open(options))
}

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
  /** How callers were admitted: the file may change while their requests are under way. */
  readonly #admitted = new WeakMap<Principal, Caller>()
  #authenticator: Authenticator

  /** @throws ConfigError `FILE:LINE: KEY …` */
  static async open (options: AccessOptions): Promise<Access> {
    const { file, skills: { rootNames: roots }, publicUrl } = options
    const resource = publicUrl === undefined ? undefined : `${publicUrl}/mcp`
    return new Access(options, await FollowedFile.open(file, (text) => Policy.parse(file, text, { roots, resource })))
  }

  private constructor (options: AccessOptions, file: FollowedFile<Policy>) {
    const { skills, log, basePath } = options
    this.#options = options
    this.file = file
    this.everything = skills
    this.nothing = skills.createView('nothing', new Map())
    this.#views = new CallerViews(skills, file.value)
    this.#links = new Links(basePath, (digest) => this.#policy.principalOf({ kind: 'link', digest }) !== undefined)
    this.#authenticator = new Authenticator(file.value, log)
    this.#warn(file.value.warnings)
    // Patterns can be checked once the skills that they could match are known.
    skills.available().then(() => { this.#warnOfPatterns() }, () => {})
    file.on('changed', (policy) => { this.#use(policy) })
    file.on('failed', (error) => {
      if (error === undefined) log.info({ file: file.path }, 'the access file can be used again')
      else {
        const details = { file: file.path, problem: error.message }
        log.error(details, 'the access file cannot be used; the last good one stays in force')
      }
    })
  }

  close (): void {
    this.file.close()
    this.#authenticator.close()
  }

  readonly skillsOf = ({ principal }: FastifyRequest): SkillService => {
    const caller = principal && this.#admitted.get(principal)
    if (caller === undefined) return this.nothing
    const present = caller.policy === this.#policy ? caller.principal : this.#policy.principalOf(caller.proof)
    return present?.scopes.has(READ_SCOPE) === true ? this.#views.of(present.view) : this.nothing
  }

  readonly whileAllowed = ({ principal }: FastifyRequest, end: () => void): () => void => {
    const caller = principal && this.#admitted.get(principal)
    if (caller !== undefined) return this.#views.watch(caller.proof, caller.policy, end)
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
      if (this.#links.digestOf(request.raw) !== undefined) reply.header('referrer-policy', 'no-referrer')
      const found = this.#authenticate(request)
      if (!(found instanceof Promise)) next(this.#admit(request, reply, found))
      // A caller who has left meanwhile gets no further: what a request takes is given back when its response closes.
      else found.then((each) => { if (!reply.raw.destroyed) next(this.#admit(request, reply, each)) }, next)
    })
    // The last word on caches, whatever a route has said. An open route gives everybody the same.
    app.addHook('onSend', (request, reply, payload, next) => {
      const control = reply.getHeader('cache-control')
      const isOwn = control !== PRIVATE && request.routeOptions.config.isOpen !== true
      if (isOwn) reply.header('cache-control', privately(control))
      next(null, payload)
    })
    const { basePath, publicUrl } = this.#options
    addMetadata(app, { basePath, publicUrl, issuers: () => this.#policy.issuers })
  }, { name: 'access' })

  /** Without credentials, a hidden skill and an absent one get the same 401: they cannot be told apart. */
  translate (error: unknown, { principal }: FastifyRequest): unknown {
    const isMissing = (error instanceof SkillError && error.code === 'skill_not_found') ||
      (error instanceof HttpProblem && error.code === 'artifact_not_found')
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
    return this.#policy.authenticate({ kind: 'link', digest })
  }

  /** Why the request may not go on, if so. Otherwise its principal is set. */
  #admit (request: FastifyRequest, reply: FastifyReply, authentication: Authentication): HttpProblem | undefined {
    // The file may have changed while a signature was checked.
    const isOld = authentication.kind === 'caller' && authentication.policy !== this.#policy
    const found = isOld ? this.#policy.authenticate(authentication.proof) : authentication
    const { isOpen = false, scope = READ_SCOPE } = request.routeOptions.config
    addVary(reply, this.#policy.vary)
    if (found.kind === 'refused') {
      const isOpenToAll = isOpen || (request.is404 && OAUTH_DISCOVERY.test(toInstance(request.url)))
      return isOpenToAll ? undefined : this.#refuse(found.refusal)
    }
    const { principal } = found
    reply.header('cache-control', PRIVATE)
    const isAllowed = isOpen || principal.scopes.has(scope)
    // A caller who has sent no credentials may have some that admit it.
    if (!isAllowed && principal.kind === 'anonymous') return this.#refuse('unauthenticated')
    // Of a refused caller too, for logs and limits.
    request.principal = principal
    if (!isAllowed) {
      this.#count('scope')
      return lacksScope(scope, this.#metadata)
    }
    this.#admitted.set(principal, found)
    return undefined
  }

  #refuse (refusal: Refusal): HttpProblem {
    this.#count(REASONS[refusal])
    return refuse(refusal, this.#metadata)
  }

  #count (reason: RefusalReason): void {
    this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1)
  }

  #use (policy: Policy): void {
    const { log } = this.#options
    this.#authenticator = new Authenticator(policy, log, this.#authenticator)
    this.#views.usePolicy(policy)
    const details = { file: this.file.path, callers: policy.secretNames.length, rules: policy.rules.length }
    log.info(details, 'the access file has changed and is in force')
    this.#warn(policy.warnings)
    this.#warnOfPatterns()
  }

  /** Where clients find the issuers. */
  get #metadata (): string | undefined {
    const { publicUrl } = this.#options
    return publicUrl === undefined || this.#policy.issuers.length === 0 ? undefined : metadataUrl(publicUrl)
  }

  #warnOfPatterns (): void {
    this.#warn(this.#policy.unfitPatterns((root) => this.#options.skills.skillsIn(root)))
  }

  #warn (problems: readonly string[]): void {
    const message = 'the access file may not say what is meant'
    for (const problem of problems) this.#options.log.warn({ problem }, message)
  }
}

function privately (control: unknown): string {
  const directives = control === undefined ? 'no-cache' : String(control)
  if (directives.includes('private') || directives.includes('no-store')) return directives
  return `private, ${directives.replace(/\bpublic,? */, '')}`
}
