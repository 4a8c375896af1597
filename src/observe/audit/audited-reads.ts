import { createHmac } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { own } from '../../core/shared/json.ts'
import { maskSecrets } from '../../core/shared/text.ts'
import { SkillsAtRevision } from '../../core/revisions/at-revision.ts'
import type { SkillsOf } from '../../http/callers.ts'
import { REVISION_HEADER } from '../../http/headers.ts'
import { NEVER_ANSWERED, type ObservedOperation, type Observer, type OperationEnd, type ResponseEnd } from '../../http/observer.ts'
import { problemCodeOf } from '../../http/problem.ts'
import { type ClientOf, peerOf } from '../../http/request/client-address.ts'
import { traceOf } from '../../http/request/traceparent.ts'
import { notedRevision } from '../../http/revision.ts'
import type { CallResult, ObservedCall } from '../../tools/calls/observer.ts'
import type { ToolOutcome } from '../../tools/tool.ts'
import { doorOfCalls, type Read, readOfCall, readOfOperation, readOfRequest } from '../reads.ts'
import type { AuthFailures } from './auth-failures.ts'
import type { LinesOfReads } from './lines-of-reads.ts'
import { type Outcome, outcomeOf, outcomeOfError } from './outcomes.ts'

export interface AuditedReadsOptions {
  readonly lines: Pick<LinesOfReads, 'add'>
  readonly failures: Pick<AuthFailures, 'admits'>
  readonly clientOf: ClientOf
  /** Names and addresses are written as their HMAC with this text: equal ones stay equal. */
  readonly salt: string | undefined
}

/** For requests that read nothing. */
const OTHER_DOOR = 'rest'

const MAX_CLIENT_CHARACTERS = 128
const MAX_FORWARDED_CHARACTERS = 512

/** How long the end of the process waits for responses to close, in milliseconds: those that were cut off close at once. */
const CLOSE_MS = 1_000

/** Hex digits of a pseudonym: enough to tell a few million callers apart. */
const PSEUDONYM_LENGTH = 24

/** One line for each read, through any door: who, what, when, which revision, and what came of it. */
export class AuditedReads implements Observer {
  readonly #options: AuditedReadsOptions
  /** Streams whose line is written: they may last for days, and the process may die before their end. */
  readonly #opened = new WeakSet<FastifyRequest>()
  /** Requests with the line of a call or of an operation: a refusal by its status is the same. */
  readonly #reported = new WeakSet<FastifyRequest>()
  /** Where the skill was when the answer began: sending may take longer than the skill stays there. */
  readonly #folderIds = new WeakMap<FastifyRequest, string | undefined>()
  #skillsOf: SkillsOf | undefined
  /** Responses that have not closed: each may leave a line yet. */
  #running = 0
  #onLastClosed = (): void => {}

  constructor (options: AuditedReadsOptions) {
    this.#options = options
  }

  useSkills (skillsOf: SkillsOf): void {
    this.#skillsOf = skillsOf
  }

  onRequest (): void {
    this.#running++
  }

  /** The answer is known, and its head goes out. */
  onAnswer (request: FastifyRequest): void {
    const skill = readOfRequest(request)?.skill
    if (skill !== undefined) this.#folderIds.set(request, this.#skillsOf?.(request).folderIdNow(skill))
  }

  onStream (request: FastifyRequest): void {
    const read = readOfRequest(request)
    if (read === undefined) return
    this.#opened.add(request)
    this.#report(request, read, 'success', Date.now())
  }

  onResponse (request: FastifyRequest, reply: FastifyReply, { milliseconds, status, isComplete, bytes }: ResponseEnd): void {
    if (--this.#running === 0) this.#onLastClosed()
    if (this.#opened.has(request)) return
    const askedAt = Date.now() - milliseconds
    const outcome = outcomeOf(status)
    const hasRead = outcome === 'success' || outcome === 'not_modified'
    const read = readOfRequest(request)
    const door = read?.door ?? doorOfCalls(request)
    const more = { bytes, digest: digestIn(reply, read), ...!hasRead && status !== NEVER_ANSWERED && { code: problemCodeOf(request) }, ...!isComplete && { complete: false } }
    if (status === 401) {
      const { clientOf, failures } = this.#options
      if (failures.admits(this.#personal(clientOf(request.raw)))) this.#report(request, { ...read, event: 'auth.failed', door: door ?? OTHER_DOOR }, outcome, askedAt, more)
    } else if (read !== undefined) this.#report(request, read, outcome, askedAt, more, revisionIn(request, reply))
    // Calls of a client that has left are reported one by one, as those of every other.
    else if (!this.#reported.has(request) && (outcome === 'denied' || (door !== undefined && !hasRead && status !== NEVER_ANSWERED))) this.#report(request, { event: 'access.denied', door: door ?? OTHER_DOOR }, outcome, askedAt, more)
  }

  onCall (call: ObservedCall): ((result: CallResult, outcome: ToolOutcome) => void) | undefined {
    const request = call.origin as FastifyRequest | undefined
    const askedAt = Date.now()
    return request && ((result, outcome) => {
      const read = readOfCall(call, request, outcome)
      if (read === undefined) return
      this.#reported.add(request)
      if (result === 'ok') this.#report(request, read, 'success', askedAt, {}, revisionRead(call, read))
      else this.#report(request, read, result === 'refused' ? 'denied' : outcomeOfError(outcome.errorKind), askedAt)
    })
  }

  onOperation (operation: ObservedOperation): ((end: OperationEnd) => void) | undefined {
    const read = readOfOperation(operation)
    if (read === undefined) return undefined
    const askedAt = Date.now()
    return ({ error, kind }) => {
      this.#reported.add(operation.origin)
      this.#report(operation.origin, read, error === undefined ? 'success' : outcomeOfError(kind), askedAt)
    }
  }

  /** Waits for responses that were cut off at the end of the process: they close after the server. */
  async lastClosed (): Promise<void> {
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, CLOSE_MS)
      this.#onLastClosed = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #report (request: FastifyRequest, { event, door, skill, path, queryLength }: Read, outcome: Outcome, askedAt: number, more: Readonly<Record<string, unknown>> = {}, revision?: string): void {
    const hasRead = outcome === 'success' || outcome === 'not_modified'
    const skills = this.#skillsOf?.(request)
    this.#options.lines.add({
      time: Date.now(),
      askedAt,
      skills: hasRead ? skills : undefined,
      skill,
      revision,
      folderId: hasRead && skill !== undefined && revision === undefined ? this.#folderIds.get(request) ?? skills?.folderIdNow(skill) : undefined,
      fields: { event, outcome, ...this.#whoAsks(request), door, client: clientName(request), reqId: request.id, trace_id: traceOf(request)?.traceId },
      target: {
        skill,
        root: skill === undefined ? undefined : skills?.rootOf(skill),
        path,
        // For lists, the number of skills that the caller sees.
        skills: hasRead && (event === 'skill.list' || event === 'discovery.index') ? skills?.namesNow().length : undefined,
        query_length: queryLength,
        ...more
      }
    })
  }

  #whoAsks ({ principal, headers, raw }: FastifyRequest): object {
    const { clientOf, salt } = this.#options
    const forwarded = headers['x-forwarded-for']
    return {
      principal: principal === undefined || principal.kind === 'anonymous'
        ? { kind: 'anonymous' }
        : { kind: principal.kind, id: this.#personal(principal.id), ...salt === undefined && { name: principal.name }, groups: principal.groups },
      source: {
        address: this.#personal(clientOf(raw)),
        peer: this.#personal(peerOf(raw)),
        // Callers may write an address there.
        ...forwarded !== undefined && salt === undefined && { forwarded: maskSecrets(String(forwarded)).slice(0, MAX_FORWARDED_CHARACTERS) }
      }
    }
  }

  #personal (text: string): string {
    const { salt } = this.#options
    return salt === undefined ? text : createHmac('sha256', salt).update(text).digest('hex').slice(0, PSEUDONYM_LENGTH)
  }
}

/** What an MCP client calls itself, else the user agent. */
function clientName ({ body, headers }: FastifyRequest): string | undefined {
  const info = own(own(own(body, 'params'), '_meta'), 'io.modelcontextprotocol/clientInfo')
  const [name, version] = [own(info, 'name'), own(info, 'version')]
  const client = typeof name === 'string' ? `${name}${typeof version === 'string' ? ` ${version}` : ''}` : headers['user-agent']
  // Callers may write a secret of theirs there.
  return client === undefined ? undefined : maskSecrets(client).slice(0, MAX_CLIENT_CHARACTERS)
}

/** `sha256:<hex>` of the file that was sent, or that the caller has: what its ETag says. */
function digestIn (reply: FastifyReply, read: Read | undefined): string | undefined {
  if (read?.event !== 'skill.read' && read?.event !== 'skill.file_read') return undefined
  const [, digest] = /^"([\da-f]{64})(?:-\w+)?"$/.exec(String(reply.getHeader('etag') ?? '')) ?? []
  return digest === undefined ? undefined : `sha256:${digest}`
}

function revisionIn (request: FastifyRequest, reply: FastifyReply): string | undefined {
  const revision = reply.getHeader(REVISION_HEADER) ?? notedRevision(request)
  return typeof revision === 'string' && reply.raw.statusCode < 400 ? revision : undefined
}

/** Of a call in a request that chose a revision: the present one may be another. */
function revisionRead ({ skills }: ObservedCall, { skill }: Read): string | undefined {
  return skill !== undefined && skills instanceof SkillsAtRevision ? skills.revisionOf(skill) : undefined
}
