import { createHmac, hash, randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import type { TrustChange } from '../trust/verified-root.ts'
import type { SkillErrorKind } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import { own } from '../core/shared/json.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { maskSecrets } from '../core/shared/text.ts'
import type { Principal, SkillsOf } from '../http/callers.ts'
import { REVISION_HEADER } from '../http/headers.ts'
import {
  NEVER_ANSWERED, type ObservedOperation, type Observer, type OperationEnd, type ResponseEnd
} from '../http/observer.ts'
import { HttpProblem } from '../http/problem.ts'
import type { AuditState } from '../http/readiness.ts'
import { clientOf, peerOf } from '../http/request/client-address.ts'
import { traceOf } from '../http/request/traceparent.ts'
import { type LineOutput, openLineOutput } from '../log.ts'
import type { FollowedPolicy } from '../config/files/followed-file.ts'
import type { CallResult, ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { type AuditEvent, doorOf, type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

type Outcome = 'success' | 'not_modified' | 'denied' | 'not_found' | 'failure' | 'error'

const MAX_CLIENT_CHARACTERS = 128
const MAX_FORWARDED_CHARACTERS = 512

/** Hex digits: enough to tell a few million callers apart. */
const PSEUDONYM_LENGTH = 24

/** O_NONBLOCK makes a pipe without a reader an error. Otherwise opening it would wait. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

/** Lines of an address without valid credentials in a minute; the rest are one line with their number. */
const MAX_FAILURES = 20
const MINUTE_MS = 60_000
const MAX_ADDRESSES = 10_000

/** Between two checks whether the log is written. */
const CHECK_MS = 1_000

export interface AuditOptions {
  /** A file, or `stdout`. */
  readonly path: string
  /** The output of the log. */
  readonly stdout: LineOutput
  /** Whether reads are refused while lines cannot be written. */
  readonly isRequired: boolean
  /** Names and addresses are written as their HMAC with this text: equal ones stay equal. */
  readonly salt: string | undefined
  readonly version: string
  readonly log: CoreLog
}

/** What changes while the service runs, and is in the log. */
export interface Watched {
  /** All skills. */
  readonly skills: Pick<View, 'available' | 'subscribe'>
  /** The access file, the lock and the trust file. */
  readonly policies: readonly FollowedPolicy[]
  readonly trust: { on (event: 'verdict', listener: (change: TrustChange) => void): void } | undefined
}

/**
 * The audit log: a line of JSON for each read through any API, and for what the service and its policies do. Each line
 * has the SHA-256 of the line before it, from the start of the process on: what was changed or cut out can be seen.
 */
export class Audit implements Observer {
  /** Refuses reads while the log cannot be written, if it is required. */
  readonly plugin: FastifyPluginAsync
  readonly #options: AuditOptions
  readonly #output: LineOutput
  readonly #timer: NodeJS.Timeout
  readonly #processId = randomBytes(4).toString('hex')
  /** Requests with a line for a call, an operation, or the opening of their stream. */
  readonly #reported = new WeakSet<FastifyRequest>()
  /** The number of lines that were lost. */
  dropped = 0
  #skillsOf: SkillsOf | undefined
  #isStarted = false
  #count = 0
  #prev: string | null = null
  /** Callers without valid credentials, by address. */
  readonly #failures = new LRUCache<string, { count: number }>({
    max: MAX_ADDRESSES,
    ttl: MINUTE_MS,
    ttlAutopurge: true,
    dispose: ({ count }, address) => {
      if (count <= MAX_FAILURES) return
      const source = { address: this.#personal(address) }
      this.append('auth.failed', 'denied', { count: count - MAX_FAILURES }, { source })
    }
  })

  #problem: string | undefined

  /** @throws the system's error when the file cannot be opened */
  constructor (options: AuditOptions) {
    const { path, stdout, isRequired } = options
    this.#options = options
    if (path !== 'stdout') beginLine(path)
    this.#output = path === 'stdout' ? stdout : openLineOutput({ path, onDropped: () => {} })
    this.#timer = setInterval(() => { this.#check() }, CHECK_MS).unref()
    this.plugin = fp(async (app) => {
      if (!isRequired) return
      app.addHook('onRequest', async ({ routeOptions: { config } }) => {
        if (this.state === 'refusing' && config.load !== 'probe') throw new HttpProblem('audit_unavailable')
      })
    }, { name: 'audit' })
  }

  get state (): AuditState {
    if (this.#output.problem === undefined) return 'working'
    return this.#options.isRequired ? 'refusing' : 'failing'
  }

  /** Opens the file again, after a rotation. */
  reopen (): void {
    if (this.#options.path !== 'stdout') this.#output.reopen()
  }

  start ({ skills, policies, trust }: Watched): void {
    this.#isStarted = true
    const { version, log, path } = this.#options
    log.info({ path }, 'writing the audit log')
    this.append('service.started', 'success', {}, { version })
    for (const file of policies) {
      const loaded = (): void => { this.append('policy.loaded', 'success', { file: file.path, digest: file.digest }) }
      loaded()
      file.on('changed', loaded)
      file.on('failed', ({ message: problem }) => {
        this.append('policy.rejected', 'failure', { file: file.path, problem })
      })
    }
    trust?.on('verdict', (change) => { this.#onVerdict(change) })
    // The first index is not a change.
    skills.available().then(() => skills.subscribe((names) => {
      for (const skill of names) this.append('skill.changed', 'success', { skill })
    }), () => {})
  }

  /** The lock or the trust file takes a skill away, or gives it back. */
  #onVerdict ({ skill, root, isServed, report: { signer, checked_revision: revision }, reason }: TrustChange): void {
    const target = { skill, root, signer: signer ?? undefined, revision: revision === '' ? undefined : revision }
    if (isServed) this.append('skill.released', 'success', target)
    else this.append('skill.quarantined', 'denied', { ...target, code: reason?.code, problem: reason?.message })
  }

  append (event: AuditEvent, outcome: Outcome, target: object, fields: object = {}): void {
    const time = Date.now()
    const id = `${time.toString(36)}-${this.#processId}-${(++this.#count).toString(36).padStart(6, '0')}`
    const at = new Date(time).toISOString()
    const line = JSON.stringify({ time: at, id, event, outcome, ...fields, target, prev: this.#prev })
    this.#prev = hash('sha256', line)
    // The log may lose lines of its own in the same output.
    const { dropped } = this.#output
    this.#output.write(`${line}\n`)
    this.dropped += this.#output.dropped - dropped
  }

  useSkills (skillsOf: SkillsOf): void {
    this.#skillsOf = skillsOf
  }

  /** Streams have their line when they open: they may last for days. */
  onStream (request: FastifyRequest): void {
    const read = readOfRequest(request)
    if (read !== undefined) this.#report(request, read, 'success')
  }

  onResponse (request: FastifyRequest, reply: FastifyReply, { status, isComplete, bytes }: ResponseEnd): void {
    if (this.#reported.has(request)) return
    const outcome = outcomeOf(status)
    const read = readOfRequest(request)
    const door = doorOf(request)
    const isAnswered = status !== NEVER_ANSWERED
    const isRefused = outcome === 'denied' || (door !== undefined && isAnswered && !hasRead(outcome))
    if (status === 401 ? !this.#hasLine(clientOf(request)) : read === undefined && !isRefused) return
    const event = status === 401 ? 'auth.failed' : read?.event ?? 'access.denied'
    this.#report(request, { ...read, door: door ?? 'rest', event }, outcome, {
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
    const failure = result === 'refused' ? 'denied' : outcomeOfError(outcome.errorKind)
    // Of a call in a request that chose a revision.
    const revision = read.skill === undefined ? undefined : call.skills.revisionOf(read.skill)
    this.#report(call.origin as FastifyRequest, read, result === 'ok' ? 'success' : failure, { revision })
  }

  onOperation (operation: ObservedOperation): ((end: OperationEnd) => void) | undefined {
    const read = readOfOperation(operation)
    if (read === undefined) return undefined
    return ({ error, kind }) => {
      this.#report(operation.origin, read, error === undefined ? 'success' : outcomeOfError(kind))
    }
  }

  /** The last lines. The process writes them when it exits. */
  async close (): Promise<void> {
    clearInterval(this.#timer)
    // Responses that were cut off close after the server.
    await nextTurn()
    this.#failures.clear()
    if (this.#isStarted) this.append('service.stopped', 'success', {}, { version: this.#options.version })
  }

  /** Says in the log that lines cannot be written, and that they can again. */
  #check (): void {
    const { isRequired, log, path } = this.#options
    const { problem } = this.#output
    if (problem === this.#problem) return
    this.#problem = problem
    if (problem === undefined) {
      log.info({ path }, 'the audit log is written again')
      if (this.dropped > 0) log.warn({ path, lines: this.dropped }, 'lines of the audit log were lost since the start')
    } else {
      const effect = isRequired ? 'reads are refused until it can' : 'its lines wait, and are lost beyond 8 MiB'
      log.warn({ path, problem }, `the audit log cannot be written; ${effect}`)
    }
  }

  /** Counts a caller without valid credentials. */
  #hasLine (client: string): boolean {
    const failures = this.#failures.get(client) ?? { count: 0 }
    if (++failures.count === 1) this.#failures.set(client, failures)
    return failures.count <= MAX_FAILURES
  }

  #report (request: FastifyRequest, read: Read, outcome: Outcome, more: object = {}): void {
    this.#reported.add(request)
    const { event, door, skill, path, queryLength } = read
    const skills = this.#skillsOf?.(request)
    const isList = event === 'skill.list' || event === 'discovery.index'
    const target = {
      skill,
      root: skill === undefined ? undefined : skills?.rootOf(skill),
      path,
      // The number that the caller sees.
      skills: isList && hasRead(outcome) ? skills?.namesNow().length : undefined,
      query_length: queryLength,
      ...more
    }
    const { principal, headers, raw } = request
    this.append(event, outcome, target, {
      principal: this.#principal(principal),
      source: {
        address: this.#personal(clientOf(request)),
        peer: this.#personal(peerOf(raw)),
        forwarded: this.#forwarded(headers)
      },
      door,
      client: clientName(request),
      reqId: request.id,
      trace_id: traceOf(request)?.traceId
    })
  }

  #principal (principal: Principal | undefined): object {
    if (principal === undefined || principal.kind === 'anonymous') return { kind: 'anonymous' }
    const { kind, id, name, groups } = principal
    return { kind, id: this.#personal(id), ...this.#options.salt === undefined && { name }, groups }
  }

  /** Callers may write an address there, or anything. */
  #forwarded ({ 'x-forwarded-for': text }: FastifyRequest['headers']): string | undefined {
    if (text === undefined || this.#options.salt !== undefined) return undefined
    return maskSecrets(String(text)).slice(0, MAX_FORWARDED_CHARACTERS)
  }

  #personal (text: string): string {
    const { salt } = this.#options
    return salt === undefined ? text : createHmac('sha256', salt).update(text).digest('hex').slice(0, PSEUDONYM_LENGTH)
  }
}

/** Makes the file if there is none, and ends the half line that a crash may have left. */
function beginLine (path: string): void {
  closeSync(openSync(path, APPEND, 0o640))
  const file = openSync(path, 'a+')
  const { size } = fstatSync(file)
  const last = Buffer.alloc(1)
  if (size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && String(last) !== '\n') writeSync(file, '\n')
  closeSync(file)
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

/** @param kind undefined for what is wrong with the call itself */
function outcomeOfError (kind: SkillErrorKind | undefined): Outcome {
  if (kind === 'forbidden') return 'denied'
  if (kind === 'missing') return 'not_found'
  return kind === 'broken' || kind === 'unavailable' ? 'error' : 'failure'
}

/** What an MCP client calls itself, else the user agent. */
function clientName ({ body, headers }: FastifyRequest): string | undefined {
  const info = own(own(own(body, 'params'), '_meta'), 'io.modelcontextprotocol/clientInfo')
  const [name, version] = [own(info, 'name'), own(info, 'version')]
  const full = typeof version === 'string' ? `${String(name)} ${version}` : name
  const client = typeof name === 'string' ? String(full) : headers['user-agent']
  // Callers may write a secret of theirs there.
  return client === undefined ? undefined : maskSecrets(client).slice(0, MAX_CLIENT_CHARACTERS)
}

/** `sha256:<hex>` of the file that was sent, or that the caller has: its ETag has it. */
function digestIn (reply: FastifyReply, event: AuditEvent): string | undefined {
  if (event !== 'skill.read' && event !== 'skill.file_read') return undefined
  const [, digest] = /^(?:W\/)?"([\da-f]{64})(?:-\w+)?"$/.exec(String(reply.getHeader('etag') ?? '')) ?? []
  return digest === undefined ? undefined : `sha256:${digest}`
}
