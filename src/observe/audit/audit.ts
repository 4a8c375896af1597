import { randomBytes } from 'node:crypto'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { SkillsOf } from '../../access/principal.ts'
import type { GateChange } from '../../core/content/trust/trust-policy.ts'
import type { SkillService } from '../../core/skill-source.ts'
import type { Observer } from '../../http/observer.ts'
import { HttpProblem, problemCodeOf } from '../../http/problem.ts'
import { REVISION_HEADER } from '../../http/headers.ts'
import { type ClientOf, peerOf } from '../../http/request/client-address.ts'
import { traceOf } from '../../http/request/traceparent.ts'
import { type AuditEvent, isDoorOfCalls, type Read, readOfCall, readOfOperation, readOfRequest } from '../reads.ts'

export interface AuditOptions {
  /** Takes whole lines; never waits. */
  readonly output: { write (line: string): void }
  readonly clientOf: ClientOf
  /** Whether reads are refused while lines cannot be written. */
  readonly isRequired: boolean
  readonly isWorking: () => boolean
  readonly version: string
}

export interface Audit {
  readonly observer: Observer
  /** Refuses reads while the log does not work, where that is wanted. */
  readonly plugin: FastifyPluginAsync
  /** Lines that were dropped because their revisions took too long. */
  readonly dropped: number
  started (): void
  /** A trust policy takes a skill away, or gives it back. */
  judged (change: GateChange): void
  /** Writes all that waits. */
  close (): Promise<void>
}

export type Outcome = 'success' | 'not_modified' | 'denied' | 'not_found' | 'failure' | 'error'

/** Pause in which lines collect, in milliseconds: the revision of a skill is looked up once for all of them. */
const COLLECT_MS = 100

/** Lines that wait for revisions. */
const MAX_WAITING = 20_000

/** Timestamps of files have steps, in milliseconds: a change this shortly before a read may be after it. */
const TIMESTAMP_STEP_MS = 20

const MAX_CLIENT_CHARACTERS = 128
const MAX_FORWARDED_CHARACTERS = 512

const EXEMPT = /\/(?:livez|readyz|metrics)$/

interface Line {
  readonly time: number
  readonly skills: SkillService | undefined
  readonly fields: Readonly<Record<string, unknown>>
  readonly target: Readonly<Record<string, unknown>>
  readonly skill: string | undefined
  readonly revision: string | undefined
}

/**
 * One line for each read, through any door: who, what, when, which revision, and what came of it. A revision needs the bytes of
 * all files. It is looked up after the answer, once for all reads of a skill within a tenth of a second. It is that of the read
 * unless the skill has changed since; then it is null.
 */
export function createAudit ({ output, clientOf, isRequired, isWorking, version }: AuditOptions): Audit {
  const processId = randomBytes(4).toString('hex')
  let skillsOf: SkillsOf | undefined
  let count = 0
  let dropped = 0
  let waiting: Line[] = []
  let timer: NodeJS.Timeout | undefined
  let flushing = Promise.resolve()

  function write ({ time, fields, target }: Line, revision: string | null | undefined): void {
    const date = new Date(time).toISOString()
    const id = `${time.toString(36)}-${processId}-${(++count).toString(36).padStart(6, '0')}`
    output.write(`${JSON.stringify({ time: date, id, ...fields, target: revision === undefined ? target : { ...target, revision } })}\n`)
  }

  function add (line: Line): void {
    if (waiting.length >= MAX_WAITING) {
      dropped++
      return
    }
    waiting.push(line)
    timer ??= setTimeout(() => { void flush() }, COLLECT_MS).unref()
  }

  function flush (): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const lines = waiting
    waiting = []
    flushing = flushing.then(() => writeAll(lines))
    return flushing
  }

  async function writeAll (lines: readonly Line[]): Promise<void> {
    const states = new Map<SkillService, Map<string, ReturnType<typeof stateOf>>>()
    for (const line of lines) {
      const { skills, skill, time } = line
      if (line.revision !== undefined) write(line, line.revision)
      else if (skills === undefined || skill === undefined) write(line, undefined)
      else {
        let known = states.get(skills)
        if (known === undefined) states.set(skills, known = new Map())
        let state = known.get(skill)
        if (state === undefined) known.set(skill, state = stateOf(skills, skill))
        const { revision, changedAt } = await state
        write(line, revision !== undefined && changedAt < time - TIMESTAMP_STEP_MS ? revision : null)
      }
    }
  }

  function report (request: FastifyRequest, { event, door, skill, path }: Read, outcome: Outcome, more: Readonly<Record<string, unknown>> = {}, revision?: string): void {
    const { principal, headers, raw, id: reqId } = request
    const forwarded = headers['x-forwarded-for']
    const trace = traceOf(request)
    const hasRead = outcome === 'success' || outcome === 'not_modified'
    add({
      time: Date.now(),
      skills: hasRead && skillsOf !== undefined ? skillsOf(request) : undefined,
      skill,
      revision,
      fields: {
        event,
        outcome,
        principal: principal === undefined ? { kind: 'anonymous' } : { kind: principal.kind, name: principal.name, groups: principal.groups },
        source: { address: clientOf(raw), peer: peerOf(raw), ...forwarded !== undefined && { forwarded: String(forwarded).slice(0, MAX_FORWARDED_CHARACTERS) } },
        door,
        client: headers['user-agent']?.slice(0, MAX_CLIENT_CHARACTERS),
        reqId,
        trace_id: trace?.traceId
      },
      target: { skill, path, ...more }
    })
  }

  const observer: Observer = {
    useSkills (given) { skillsOf = given },
    onRequest () {},
    onResponse (request, reply, { isComplete, bytes }) {
      const outcome = outcomeOf(reply.raw.statusCode)
      const read = readOfRequest(request)
      const more = { bytes, ...outcome !== 'success' && outcome !== 'not_modified' && { code: problemCodeOf(request) }, ...!isComplete && { complete: false } }
      if (read !== undefined) report(request, read, outcome, more, revisionIn(reply))
      else if (outcome === 'denied' || (isDoorOfCalls(request) && outcome !== 'success' && outcome !== 'not_modified')) {
        report(request, { event: 'access.denied', door: doorOf(request) }, outcome, more)
      }
    },
    onCall (call) {
      const request = call.origin as FastifyRequest | undefined
      if (request === undefined) return undefined
      const read = readOfCall(call, request, skillsOf?.(request).availableNow() ?? [])
      if (read === undefined) return undefined
      return (result) => { report(request, read, result === 'ok' ? 'success' : result === 'refused' ? 'denied' : 'failure') }
    },
    onOperation (operation) {
      const read = readOfOperation(operation)
      if (read === undefined) return undefined
      return ({ error }) => { report(operation.origin, read, error === undefined ? 'success' : 'failure') }
    }
  }

  const plugin = fp(async function audit (app) {
    if (!isRequired) return
    app.addHook('onRequest', (request, _reply, next) => {
      if (isWorking() || EXEMPT.test(request.routeOptions.url ?? '')) next()
      else next(new HttpProblem('audit_unavailable'))
    })
  }, { name: 'audit', fastify: '5.x' })

  function writeNow (fields: { readonly event: AuditEvent, readonly outcome: Outcome, readonly version?: string }, target: Line['target'] = {}, revision?: string): void {
    write({ time: Date.now(), fields, target, skills: undefined, skill: undefined, revision: undefined }, revision)
  }

  return {
    observer,
    plugin,
    get dropped () { return dropped },
    started () { writeNow({ event: 'service.started', outcome: 'success', version }) },
    judged ({ folder: { name: skill }, root, verdict: { isServed, report: { signer, checked_revision: revision }, findings: [reason] } }) {
      const target = { skill, root, signer: signer ?? undefined, ...!isServed && { code: reason?.code, problem: reason?.message } }
      writeNow(isServed ? { event: 'skill.released', outcome: 'success' } : { event: 'skill.quarantined', outcome: 'denied' }, target, revision === '' ? undefined : revision)
    },
    async close () {
      await flush()
      writeNow({ event: 'service.stopped', outcome: 'success', version })
    }
  }
}

/** The present revision of a skill, and when any of its files has changed last. */
async function stateOf (skills: SkillService, name: string): Promise<{ readonly revision: string | undefined, readonly changedAt: number }> {
  try {
    const state = await skills.inspect(name)
    if (state !== undefined && !('ended' in state)) return state
  } catch {
    // A disk that fails, or a skill that is being written: nobody knows.
  }
  return { revision: undefined, changedAt: Number.POSITIVE_INFINITY }
}

function revisionIn (reply: FastifyReply): string | undefined {
  const revision = reply.getHeader(REVISION_HEADER)
  return typeof revision === 'string' && reply.raw.statusCode < 400 ? revision : undefined
}

function doorOf ({ routeOptions: { url: route = '' } }: FastifyRequest): string {
  if (route.endsWith('/mcp')) return 'mcp'
  return route.endsWith('/agent/tool-call') ? 'tool-call' : 'rest'
}

function outcomeOf (status: number): Outcome {
  if (status < 300) return 'success'
  if (status < 400) return 'not_modified'
  if (status === 401 || status === 403 || status === 429) return 'denied'
  if (status === 404) return 'not_found'
  return status < 500 ? 'failure' : 'error'
}
