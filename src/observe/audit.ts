import { createHmac } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/settings.ts'
import type { FollowedPolicy } from '../operator/followed-file.ts'
import type { TrustChange } from '../trust/guarded-listing.ts'
import type { SkillErrorKind } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import { own } from '../core/shared/json.ts'
import type { SkillsOf } from '../http/callers.ts'
import { REVISION_HEADER } from '../http/headers.ts'
import {
  CLIENT_CLOSED_REQUEST, type ObservedOperation, type Observer, type OperationEnd, type ResponseEnd
} from '../http/observer.ts'
import { HttpProblem } from '../http/problem.ts'
import { clientOf, peerOf } from '../http/request/client-address.ts'
import { traceOf } from '../http/request/traceparent.ts'
import type { CallResult, ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { AuditLog, type AuditLogOptions, type Outcome } from './audit-log.ts'
import { type AuditEvent, apiOf, cut, type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

const MAX_CLIENT_CHARACTERS = 128

/** Length in hexadecimal digits, enough to distinguish a few million callers. */
const PSEUDONYM_LENGTH = 24

/** Lines per minute for failed logins from one address; the others are counted in one more line. */
const MAX_FAILURES = 20
const MINUTE_MS = 60_000
/** Addresses that are counted in one minute; all others are counted together. */
const MAX_ADDRESSES = 10_000

interface AuditOptions extends AuditLogOptions, Pick<Config, 'auditSalt'> {
  readonly version: string
}

/** The parts of the service whose changes are in the audit log. */
export interface Watched {
  /** All skills. */
  readonly skills: Pick<View, 'feed'>
  /** The access file, the lock and the trust file. */
  readonly policies: readonly FollowedPolicy[]
  readonly trust: { on (event: 'verdict', listener: (change: TrustChange) => void): void } | undefined
}

/** Writes a line to the audit log for each read through any API, and for each event of the service and its policies. */
export class Audit implements Observer {
  readonly log: AuditLog
  readonly #options: AuditOptions
  /** Requests that already have a line: for a call, an operation, or a stream that opened. */
  readonly #reported = new WeakSet<FastifyRequest>()
  readonly #failedLogins: FailedLogins
  #skillsOf: SkillsOf | undefined
  #isStarted = false

  /** @throws the system's error if the file cannot be opened */
  static async open (options: AuditOptions): Promise<Audit> {
    return new Audit(options, await AuditLog.open(options))
  }

  private constructor (options: AuditOptions, log: AuditLog) {
    this.#options = options
    this.log = log
    this.#failedLogins = new FailedLogins((address, count) => {
      log.append('auth.failed', 'denied', { count }, { source: { address: address && this.#personal(address) } })
    })
  }

  /** Refuses reads while the log cannot be written, if it is required. */
  readonly plugin = fp(async (app) => {
    app.addHook('onRequest', async ({ routeOptions: { config } }) => {
      if (this.log.state === 'refusing' && config.load !== 'probe') throw new HttpProblem('audit_unavailable')
    })
  }, { name: 'audit' })

  start ({ skills, policies, trust }: Watched): void {
    const { log, path, version } = this.#options
    this.#isStarted = true
    log.info({ path }, 'audit log opened')
    this.log.append('service.started', 'success', {}, { version })
    for (const file of policies) {
      const loaded = (): void => {
        this.log.append('policy.loaded', 'success', { file: file.path, digest: file.digest })
      }
      loaded()
      file.on('changed', loaded)
      file.on('failed', ({ message: problem }) => {
        this.log.append('policy.rejected', 'failure', { file: file.path, problem })
      })
    }
    // The lock or the trust file refuses a skill, or accepts it again.
    trust?.on('verdict', ({ skill, root, isServed, report: { signer, checked_revision: checked }, reason }) => {
      const target = { skill, root, signer: signer ?? undefined, revision: checked === '' ? undefined : checked }
      if (isServed) this.log.append('skill.released', 'success', target)
      else {
        const problem = { code: reason?.code, problem: reason?.message }
        this.log.append('skill.quarantined', 'denied', { ...target, ...problem })
      }
    })
    skills.feed.onChange(({ name: skill }) => { this.log.append('skill.changed', 'success', { skill }) })
  }

  async close (): Promise<void> {
    // Waits for responses that were cut off: they close after the server.
    await nextTurn()
    this.#failedLogins.close()
    if (this.#isStarted) this.log.append('service.stopped', 'success', {}, { version: this.#options.version })
    this.log.close()
  }

  init (of: SkillsOf): void {
    this.#skillsOf = of
  }

  /** Writes the line of a stream when it opens: it may last for days. */
  onStream (request: FastifyRequest): void {
    const read = readOfRequest(request)
    if (read !== undefined) this.#report(request, read, 'success')
  }

  onResponse (request: FastifyRequest, reply: FastifyReply, { status, isComplete, bytes }: ResponseEnd): void {
    if (this.#reported.has(request)) return
    const outcome = outcomeOf(status)
    const read = readOfRequest(request)
    const api = apiOf(request)
    const isAnswered = status !== CLIENT_CLOSED_REQUEST
    const isRefused = outcome === 'denied' || (api !== undefined && isAnswered && !hasRead(outcome))
    const isLogged = status === 401 ? this.#failedLogins.count(clientOf(request)) : read !== undefined || isRefused
    if (!isLogged) return
    const event = status === 401 ? 'auth.failed' : read?.event ?? 'access.denied'
    this.#report(request, { ...read, api: api ?? 'rest', event }, outcome, {
      bytes,
      digest: digestIn(reply, event),
      ...hasRead(outcome)
        ? { revision: reply.getHeader(REVISION_HEADER) }
        : isAnswered && { code: request.problemCode },
      ...!isComplete && { complete: false }
    })
  }

  onCall (call: ObservedCall, result: CallResult, outcome: ToolOutcome): void {
    const read = readOfCall(call, outcome)
    if (read === undefined) return
    const origin = call.origin as FastifyRequest
    const failure = result === 'refused' ? 'denied' : outcomeOfError(outcome.errorKind)
    // Known when the request named a revision.
    const revision = read.skill === undefined ? undefined : origin.pinnedView?.revisionOf(read.skill)
    this.#report(origin, read, result === 'ok' ? 'success' : failure, { revision })
  }

  onOperation (operation: ObservedOperation): ((end: OperationEnd) => void) | undefined {
    const read = readOfOperation(operation)
    return read && (({ error, kind }) => {
      this.#report(operation.origin, read, error === undefined ? 'success' : outcomeOfError(kind))
    })
  }

  #report (request: FastifyRequest, read: Read, outcome: Outcome, more: object = {}): void {
    this.#reported.add(request)
    const { event, api, skill, path, query, results } = read
    const { 'x-forwarded-for': forwarded } = request.headers
    const skills = this.#skillsOf?.(request)
    const isList = event === 'skill.list' || event === 'discovery.index'
    this.log.append(event, outcome, {
      skill,
      root: skill === undefined ? undefined : skills?.rootOf(skill),
      path,
      // The number of skills in the caller's view.
      skills: isList && hasRead(outcome) ? skills?.indexedNames().length : undefined,
      query: query && this.#personal(query),
      results,
      ...more
    }, {
      principal: this.#principalOf(request),
      source: {
        address: this.#personal(clientOf(request)),
        peer: this.#personal(peerOf(request.raw)),
        // Left out with a salt: callers can write anything there, addresses too.
        forwarded: this.#options.auditSalt === undefined ? cut(forwarded) : undefined
      },
      door: api,
      client: clientName(request),
      reqId: request.id,
      trace_id: traceOf(request)?.traceId
    })
  }

  /** Replaces a text about a caller by an HMAC, if there is a salt: equal texts stay equal. */
  #personal (text: string): string {
    const { auditSalt: salt } = this.#options
    return salt === undefined ? text : createHmac('sha256', salt).update(text).digest('hex').slice(0, PSEUDONYM_LENGTH)
  }

  #principalOf ({ principal }: FastifyRequest): object {
    if (principal === undefined || principal.kind === 'anonymous') return { kind: 'anonymous' }
    const { kind, id, name, groups } = principal
    return { kind, id: this.#personal(id), ...this.#options.auditSalt === undefined && { name }, groups }
  }
}

/** Counts failed logins by address, and reports each minute those that had no line. */
class FailedLogins {
  readonly #counts = new Map<string, number>()
  readonly #report: (address: string, count: number) => void
  readonly #timer: NodeJS.Timeout

  /** @param report is called at the end of each minute with the number of logins that had no line */
  constructor (report: (address: string, count: number) => void) {
    this.#report = report
    this.#timer = setInterval(() => { this.#flush() }, MINUTE_MS).unref()
  }

  /** Counts a failed login. Returns whether it gets a line of its own. */
  count (address: string): boolean {
    const key = this.#counts.size < MAX_ADDRESSES || this.#counts.has(address) ? address : ''
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count <= MAX_FAILURES
  }

  close (): void {
    clearInterval(this.#timer)
    this.#flush()
  }

  #flush (): void {
    for (const [address, count] of this.#counts) if (count > MAX_FAILURES) this.#report(address, count - MAX_FAILURES)
    this.#counts.clear()
  }
}

function hasRead (outcome: Outcome): boolean {
  return outcome === 'success' || outcome === 'not_modified'
}

function outcomeOf (status: number): Outcome {
  if (status < 300) return 'success'
  if (status < 400) return 'not_modified'
  if (status === 401 || status === 403 || status === 429) return 'denied'
  if (status === 404) return 'not_found'
  return status < 500 ? 'failure' : 'error'
}

/** @param kind undefined if the call itself was wrong */
function outcomeOfError (kind: SkillErrorKind | undefined): Outcome {
  if (kind === 'forbidden') return 'denied'
  if (kind === 'missing') return 'not_found'
  return kind === 'broken' || kind === 'unavailable' ? 'error' : 'failure'
}

/** The name and version that an MCP client gives itself, else the user agent. */
function clientName ({ body, headers }: FastifyRequest): string | undefined {
  const info = own(own(own(body, 'params'), '_meta'), 'io.modelcontextprotocol/clientInfo')
  const parts = [own(info, 'name'), own(info, 'version')].filter((part) => typeof part === 'string')
  return cut(parts.join(' ') || headers['user-agent'], MAX_CLIENT_CHARACTERS)
}

/** Reads the digest of the file that was sent, or that the caller already has, from the ETag. */
function digestIn (reply: FastifyReply, event: AuditEvent): string | undefined {
  if (event !== 'skill.read' && event !== 'skill.file_read') return undefined
  const [, digest] = /^(?:W\/)?"([\da-f]{64})(?:-\w+)?"$/.exec(String(reply.getHeader('etag') ?? '')) ?? []
  return digest && `sha256:${digest}`
}
