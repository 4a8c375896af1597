import { createHmac, hash, randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import type { TrustChange } from '../trust/guarded-listing.ts'
import type { SkillErrorKind } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import { own } from '../core/shared/json.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { maskSecrets } from '../secrets.ts'
import type { SkillsOf } from '../http/callers.ts'
import { REVISION_HEADER } from '../http/headers.ts'
import { NEVER_ANSWERED, type Observer } from '../http/observer.ts'
import { HttpProblem } from '../http/problem.ts'
import type { AuditState } from '../http/readiness.ts'
import { clientOf, peerOf } from '../http/request/client-address.ts'
import { traceOf } from '../http/request/traceparent.ts'
import { type LineOutput, openLineOutput } from '../log.ts'
import type { FollowedPolicy } from '../config/files/followed-file.ts'
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
 * @throws the system's error when the file cannot be opened
 */
export function createAudit ({ path, stdout, isRequired, salt, version, log }: AuditOptions) {
  if (path !== 'stdout') beginLine(path)
  const output = path === 'stdout' ? stdout : openLineOutput({ path, onDropped: () => {} })
  const processId = randomBytes(4).toString('hex')
  /** Requests with a line for a call, an operation, or the opening of their stream. */
  const reported = new WeakSet<FastifyRequest>()
  let skillsOf: SkillsOf | undefined
  let isStarted = false
  let dropped = 0
  let count = 0
  let prev: string | null = null

  function append (event: AuditEvent, outcome: Outcome, target: object, fields: object = {}): void {
    const time = Date.now()
    const id = `${time.toString(36)}-${processId}-${(++count).toString(36).padStart(6, '0')}`
    const line = JSON.stringify({ time: new Date(time).toISOString(), id, event, outcome, ...fields, target, prev })
    prev = hash('sha256', line)
    // The log may lose lines of its own in the same output.
    const before = output.dropped
    output.write(`${line}\n`)
    dropped += output.dropped - before
  }

  function personal (text: string): string {
    return salt === undefined ? text : createHmac('sha256', salt).update(text).digest('hex').slice(0, PSEUDONYM_LENGTH)
  }

  /** Callers without valid credentials, by address. */
  const failures = new LRUCache<string, { count: number }>({
    max: MAX_ADDRESSES,
    ttl: MINUTE_MS,
    ttlAutopurge: true,
    dispose: ({ count }, address) => {
      if (count <= MAX_FAILURES) return
      append('auth.failed', 'denied', { count: count - MAX_FAILURES }, { source: { address: personal(address) } })
    }
  })

  /** Counts a caller without valid credentials. */
  function hasLine (client: string): boolean {
    const failed = failures.get(client) ?? { count: 0 }
    if (++failed.count === 1) failures.set(client, failed)
    return failed.count <= MAX_FAILURES
  }

  function principalOf ({ principal }: FastifyRequest): object {
    if (principal === undefined || principal.kind === 'anonymous') return { kind: 'anonymous' }
    const { kind, id, name, groups } = principal
    return { kind, id: personal(id), ...salt === undefined && { name }, groups }
  }

  function report (request: FastifyRequest, read: Read, outcome: Outcome, more: object = {}): void {
    reported.add(request)
    const { event, door, skill, path, queryLength } = read
    const { 'x-forwarded-for': forwarded } = request.headers
    const skills = skillsOf?.(request)
    const isList = event === 'skill.list' || event === 'discovery.index'
    append(event, outcome, {
      skill,
      root: skill === undefined ? undefined : skills?.rootOf(skill),
      path,
      // The number that the caller sees.
      skills: isList && hasRead(outcome) ? skills?.indexedNames().length : undefined,
      query_length: queryLength,
      ...more
    }, {
      principal: principalOf(request),
      source: {
        address: personal(clientOf(request)),
        peer: personal(peerOf(request.raw)),
        // Callers may write an address there, or anything.
        forwarded: forwarded === undefined || salt !== undefined ? undefined : cut(forwarded, MAX_FORWARDED_CHARACTERS)
      },
      door,
      client: clientName(request),
      reqId: request.id,
      trace_id: traceOf(request)?.traceId
    })
  }

  let known: string | undefined
  /** Says in the log that lines cannot be written, and that they can again. */
  const timer = setInterval(() => {
    const { problem } = output
    if (problem === known) return
    known = problem
    if (problem === undefined) {
      log.info({ path }, 'the audit log is written again')
      if (dropped > 0) log.warn({ path, lines: dropped }, 'lines of the audit log were lost since the start')
    } else {
      const effect = isRequired ? 'reads are refused until it can' : 'its lines wait, and are lost beyond 8 MiB'
      log.warn({ path, problem }, `the audit log cannot be written; ${effect}`)
    }
  }, CHECK_MS).unref()

  const state = (): AuditState => output.problem === undefined ? 'working' : isRequired ? 'refusing' : 'failing'

  const observer: Observer = {
    useSkills (of) { skillsOf = of },

    /** Streams have their line when they open: they may last for days. */
    onStream (request) {
      const read = readOfRequest(request)
      if (read !== undefined) report(request, read, 'success')
    },

    onResponse (request, reply, { status, isComplete, bytes }) {
      if (reported.has(request)) return
      const outcome = outcomeOf(status)
      const read = readOfRequest(request)
      const door = doorOf(request)
      const isAnswered = status !== NEVER_ANSWERED
      const isRefused = outcome === 'denied' || (door !== undefined && isAnswered && !hasRead(outcome))
      if (status === 401 ? !hasLine(clientOf(request)) : read === undefined && !isRefused) return
      const event = status === 401 ? 'auth.failed' : read?.event ?? 'access.denied'
      report(request, { ...read, door: door ?? 'rest', event }, outcome, {
        bytes,
        digest: digestIn(reply, event),
        ...hasRead(outcome)
          ? { revision: reply.getHeader(REVISION_HEADER) }
          : isAnswered && { code: request.problemCode },
        ...!isComplete && { complete: false }
      })
    },

    onCall (call, result, outcome) {
      const read = readOfCall(call, outcome)
      if (read === undefined) return
      const failure = result === 'refused' ? 'denied' : outcomeOfError(outcome.errorKind)
      // Of a call in a request that chose a revision.
      const revision = read.skill === undefined ? undefined : call.skills.revisionOf(read.skill)
      report(call.origin as FastifyRequest, read, result === 'ok' ? 'success' : failure, { revision })
    },

    onOperation (operation) {
      const read = readOfOperation(operation)
      return read && (({ error, kind }) => {
        report(operation.origin, read, error === undefined ? 'success' : outcomeOfError(kind))
      })
    }
  }

  return {
    observer,
    state,
    /** The number of lines that were lost. */
    dropped: () => dropped,

    /** Refuses reads while the log cannot be written, if it is required. */
    plugin: fp(async (app) => {
      app.addHook('onRequest', async ({ routeOptions: { config } }) => {
        if (state() === 'refusing' && config.load !== 'probe') throw new HttpProblem('audit_unavailable')
      })
    }, { name: 'audit' }),

    /** Opens the file again, after a rotation. */
    reopen () { if (path !== 'stdout') output.reopen() },

    start ({ skills, policies, trust }: Watched): void {
      isStarted = true
      log.info({ path }, 'writing the audit log')
      append('service.started', 'success', {}, { version })
      for (const file of policies) {
        const loaded = (): void => { append('policy.loaded', 'success', { file: file.path, digest: file.digest }) }
        loaded()
        file.on('changed', loaded)
        file.on('failed', ({ message: problem }) => {
          append('policy.rejected', 'failure', { file: file.path, problem })
        })
      }
      // The lock or the trust file takes a skill away, or gives it back.
      trust?.on('verdict', ({ skill, root, isServed, report: { signer, checked_revision: checked }, reason }) => {
        const target = { skill, root, signer: signer ?? undefined, revision: checked === '' ? undefined : checked }
        if (isServed) append('skill.released', 'success', target)
        else append('skill.quarantined', 'denied', { ...target, code: reason?.code, problem: reason?.message })
      })
      // The first index is not a change.
      skills.available().then(() => skills.subscribe((names) => {
        for (const skill of names) append('skill.changed', 'success', { skill })
      }), () => {})
    },

    /** The last lines. The process writes them when it exits. */
    async close (): Promise<void> {
      clearInterval(timer)
      // Responses that were cut off close after the server.
      await nextTurn()
      failures.clear()
      if (isStarted) append('service.stopped', 'success', {}, { version })
    }
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
  const parts = [own(info, 'name'), own(info, 'version')].filter((part) => typeof part === 'string')
  return cut(parts.join(' ') || headers['user-agent'], MAX_CLIENT_CHARACTERS)
}

/** Callers may write a secret of theirs in any header. */
function cut (text: string | string[] | undefined, characters: number): string | undefined {
  return text === undefined ? undefined : maskSecrets(String(text)).slice(0, characters)
}

/** `sha256:<hex>` of the file that was sent, or that the caller has: its ETag has it. */
function digestIn (reply: FastifyReply, event: AuditEvent): string | undefined {
  if (event !== 'skill.read' && event !== 'skill.file_read') return undefined
  const [, digest] = /^(?:W\/)?"([\da-f]{64})(?:-\w+)?"$/.exec(String(reply.getHeader('etag') ?? '')) ?? []
  return digest && `sha256:${digest}`
}
