import { createHmac } from 'node:crypto'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { SkillsOf } from '../../http/callers.ts'
import type { FollowedPolicy } from '../../operator/followed-file.ts'
import type { CatalogChange } from '../../core/catalog/catalog.ts'
import type { GateChange } from '../../core/content/trust/trust-policy.ts'
import type { Observer } from '../../http/observer.ts'
import { HttpProblem, problemCodeOf } from '../../http/problem.ts'
import { REVISION_HEADER } from '../../http/headers.ts'
import { type ClientOf, peerOf } from '../../http/request/client-address.ts'
import { traceOf } from '../../http/request/traceparent.ts'
import type { SkillErrorKind } from '../../core/ground/errors.ts'
import { own } from '../../core/ground/json.ts'
import { maskSecrets } from '../../core/ground/text.ts'
import { AuthFailures } from './auth-failures.ts'
import { Journal, type JournalOptions } from './journal.ts'
import { LinesOfReads } from './lines-of-reads.ts'
import { type AuditEvent, doorOfCalls, type Read, readOfCall, readOfOperation, readOfRequest } from '../reads.ts'

export interface AuditOptions extends JournalOptions {
  readonly clientOf: ClientOf
  /** Whether reads are refused while lines cannot be written. */
  readonly isRequired: boolean
  readonly isWorking: () => boolean
  readonly version: string
  /** Names and addresses are written as their HMAC with this text: equal ones stay equal. */
  readonly salt?: string | undefined
}

export interface Audit {
  readonly observer: Observer
  /** Refuses reads while the log does not work, where that is wanted. */
  readonly plugin: FastifyPluginAsync
  /** Lines that were dropped because their revisions took too long. */
  readonly dropped: number
  started (): void
  /** Reports the state of a policy file now, and each change of it. */
  follow (file: FollowedPolicy): void
  catalogChanged (change: Pick<CatalogChange, 'added' | 'changed' | 'removed'>): void
  /** Lines were lost on their path to the file. */
  lost (lines: number): void
  /** A trust policy takes a skill away, or gives it back. */
  judged (change: GateChange): void
  /** Writes all that waits. */
  close (): Promise<void>
}

export type Outcome = 'success' | 'not_modified' | 'denied' | 'not_found' | 'failure' | 'error'

/** Of a request that reads nothing. */
const OTHER_DOOR = 'rest'

const MAX_CLIENT_CHARACTERS = 128
const MAX_FORWARDED_CHARACTERS = 512

/** How long the end of the process waits for responses to close, in milliseconds: those that were cut off close at once. */
const CLOSE_MS = 1_000

/** Of the digest, in hex digits: enough to tell a few million callers apart. */
const PSEUDONYM_LENGTH = 24

/** One line for each read, through any door: who, what, when, which revision, and what came of it. */
export function createAudit ({ output, last, clientOf, isRequired, isWorking, version, salt }: AuditOptions): Audit {
  const journal = new Journal({ output, last })
  const lines = new LinesOfReads(journal, (count) => { ofService('audit.dropped', 'error', { lines: count }) })
  const failures = new AuthFailures((address, count) => {
    ofService('auth.failed', 'denied', { count }, { source: { address } })
  })
  /** Streams whose line is written: they may last for days, and the process may die before their end. */
  const opened = new WeakSet<FastifyRequest>()
  let skillsOf: SkillsOf | undefined
  let isStarted = false
  /** Responses that have not closed: each may leave a line yet. */
  let running = 0
  let onLastClosed = (): void => {}

  const personal = (text: string): string => salt === undefined ? text : createHmac('sha256', salt).update(text).digest('hex').slice(0, PSEUDONYM_LENGTH)

  function report (request: FastifyRequest, { event, door, skill, path, queryLength }: Read, outcome: Outcome, more: Readonly<Record<string, unknown>> = {}, revision?: string): void {
    const hasRead = outcome === 'success' || outcome === 'not_modified'
    const skills = skillsOf?.(request)
    lines.add({
      time: Date.now(),
      skills: hasRead ? skills : undefined,
      skill,
      revision,
      fields: { event, outcome, ...whoAsks(request), door, client: clientName(request), reqId: request.id, trace_id: traceOf(request)?.traceId },
      target: {
        skill,
        root: skill === undefined ? undefined : skills?.rootOf(skill),
        path,
        // Of a list, how many the caller sees.
        skills: hasRead && (event === 'skill.list' || event === 'discovery.index') ? skills?.namesNow().length : undefined,
        query_length: queryLength,
        ...more
      }
    })
  }

  function whoAsks ({ principal, headers, raw }: FastifyRequest): object {
    const forwarded = headers['x-forwarded-for']
    return {
      principal: principal === undefined || principal.kind === 'anonymous'
        ? { kind: 'anonymous' }
        : { kind: principal.kind, id: personal(principal.id), ...salt === undefined && { name: principal.name }, groups: principal.groups },
      source: {
        address: personal(clientOf(raw)),
        peer: personal(peerOf(raw)),
        // Whatever a caller writes there may be an address.
        ...forwarded !== undefined && salt === undefined && { forwarded: maskSecrets(String(forwarded)).slice(0, MAX_FORWARDED_CHARACTERS) }
      }
    }
  }

  const observer: Observer = {
    useSkills (given) { skillsOf = given },
    onRequest () { running++ },
    onStream (request) {
      const read = readOfRequest(request)
      if (read === undefined) return
      opened.add(request)
      report(request, read, 'success')
    },
    onResponse (request, reply, { isComplete, bytes }) {
      if (--running === 0) onLastClosed()
      if (opened.has(request)) return
      const outcome = outcomeOf(reply.raw.statusCode)
      const read = readOfRequest(request)
      const more = { bytes, digest: digestIn(reply, read), ...outcome !== 'success' && outcome !== 'not_modified' && { code: problemCodeOf(request) }, ...!isComplete && { complete: false } }
      if (reply.raw.statusCode === 401) {
        const address = personal(clientOf(request.raw))
        if (failures.admits(address)) report(request, { ...read, event: 'auth.failed', door: read?.door ?? doorOfCalls(request) ?? OTHER_DOOR }, outcome, more)
      } else if (read !== undefined) report(request, read, outcome, more, revisionIn(reply))
      else {
        const door = doorOfCalls(request)
        if (outcome === 'denied' || (door !== undefined && outcome !== 'success' && outcome !== 'not_modified')) {
          report(request, { event: 'access.denied', door: door ?? OTHER_DOOR }, outcome, more)
        }
      }
    },
    onCall (call) {
      const request = call.origin as FastifyRequest | undefined
      if (request === undefined) return undefined
      const read = readOfCall(call, request, skillsOf?.(request).availableNow() ?? [])
      if (read === undefined) return undefined
      return (result, { errorKind }) => { report(request, read, result === 'ok' ? 'success' : result === 'refused' ? 'denied' : outcomeOfError(errorKind)) }
    },
    onOperation (operation) {
      const read = readOfOperation(operation)
      if (read === undefined) return undefined
      return ({ error, kind }) => { report(operation.origin, read, error === undefined ? 'success' : outcomeOfError(kind)) }
    }
  }

  const plugin = fp(async function audit (app) {
    if (!isRequired) return
    app.addHook('onRequest', (request, _reply, next) => {
      if ((isWorking() && lines.hasRoom) || request.routeOptions.config.load === 'probe') next()
      else next(new HttpProblem('audit_unavailable'))
    })
  }, { name: 'audit', fastify: '5.x' })

  function ofService (event: AuditEvent, outcome: Outcome, target: object = {}, fields: object = {}): void {
    journal.append(Date.now(), { event, outcome, ...fields, target })
  }

  return {
    observer,
    plugin,
    get dropped () { return lines.dropped },
    started () {
      isStarted = true
      ofService('service.started', 'success', {}, { version })
    },
    follow (file) {
      const loaded = (): void => { ofService('policy.loaded', 'success', { file: file.path, digest: file.digest }) }
      loaded()
      file.changed.subscribe(loaded)
      file.failed.subscribe((error) => {
        if (error !== undefined) ofService('policy.rejected', 'failure', { file: file.path, problem: error.message })
      })
    },
    catalogChanged (change) {
      for (const kind of ['added', 'changed', 'removed'] as const) {
        for (const skill of change[kind]) ofService('skill.changed', 'success', { skill, change: kind })
      }
    },
    lost (count) { ofService('audit.dropped', 'error', { lines: count }) },
    judged ({ folder: { name: skill }, root, verdict: { isServed, report: { signer, checked_revision: revision }, findings: [reason] } }) {
      const target = { skill, root, signer: signer ?? undefined, ...!isServed && { code: reason?.code, problem: reason?.message } }
      const judged = { ...target, revision: revision === '' ? undefined : revision }
      if (isServed) ofService('skill.released', 'success', judged)
      else ofService('skill.quarantined', 'denied', judged)
    },
    async close () {
      // A server is closed before the responses that it cut off are.
      if (running > 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, CLOSE_MS)
          onLastClosed = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      failures.close()
      await lines.close()
      if (isStarted) ofService('service.stopped', 'success', {}, { version })
    }
  }
}

/** What an MCP client calls itself, else the user agent. */
function clientName ({ body, headers }: FastifyRequest): string | undefined {
  const info = own(own(own(body, 'params'), '_meta'), 'io.modelcontextprotocol/clientInfo')
  const [name, version] = [own(info, 'name'), own(info, 'version')]
  const client = typeof name === 'string' ? `${name}${typeof version === 'string' ? ` ${version}` : ''}` : headers['user-agent']
  // Whatever a caller writes there may be a secret of its own.
  return client === undefined ? undefined : maskSecrets(client).slice(0, MAX_CLIENT_CHARACTERS)
}

/** `sha256:<hex>` of the file that was sent, or that the caller has: what its ETag says. */
function digestIn (reply: FastifyReply, read: Read | undefined): string | undefined {
  if (read?.event !== 'skill.read' && read?.event !== 'skill.file_read') return undefined
  const [, digest] = /^"([\da-f]{64})(?:-\w+)?"$/.exec(String(reply.getHeader('etag') ?? '')) ?? []
  return digest === undefined ? undefined : `sha256:${digest}`
}

function revisionIn (reply: FastifyReply): string | undefined {
  const revision = reply.getHeader(REVISION_HEADER)
  return typeof revision === 'string' && reply.raw.statusCode < 400 ? revision : undefined
}

/** The same as REST's statuses have. */
const OUTCOMES = {
  invalid: 'failure',
  forbidden: 'denied',
  missing: 'not_found',
  outdated: 'failure',
  too_large: 'failure',
  unprocessable: 'failure',
  broken: 'error',
  unavailable: 'error'
} as const satisfies Record<SkillErrorKind, Outcome>

/** @param kind undefined for what is wrong with the call itself */
function outcomeOfError (kind: SkillErrorKind | undefined): Outcome {
  return kind === undefined ? 'failure' : OUTCOMES[kind]
}

function outcomeOf (status: number): Outcome {
  if (status < 300) return 'success'
  if (status < 400) return 'not_modified'
  if (status === 401 || status === 403 || status === 429) return 'denied'
  if (status === 404) return 'not_found'
  return status < 500 ? 'failure' : 'error'
}
