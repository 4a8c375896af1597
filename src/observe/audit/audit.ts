import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { CatalogChange } from '../../core/catalog/catalog.ts'
import type { TrustChange } from '../../core/shared/origin.ts'
import type { Observer } from '../../http/observer.ts'
import { HttpProblem } from '../../http/problem.ts'
import type { AuditState } from '../../http/readiness.ts'
import type { FollowedPolicy } from '../../config/files/followed-file.ts'
import type { AuditEvent } from '../reads.ts'
import { AuditedReads, type AuditedReadsOptions } from './audited-reads.ts'
import { AuthFailures } from './auth-failures.ts'
import { Journal, type JournalOptions } from './journal.ts'
import { LinesOfReads } from './lines-of-reads.ts'
import type { Outcome } from './outcomes.ts'

export interface AuditOptions extends JournalOptions, Pick<AuditedReadsOptions, 'clientOf'>, Partial<Pick<AuditedReadsOptions, 'salt'>> {
  /** Whether reads are refused while lines cannot be written. */
  readonly isRequired: boolean
  readonly isWorking: () => boolean
  readonly version: string
}

/** The audit log: a line for each read, and for what the service and its policies do. */
export class Audit {
  /** Notes what is answered, and refuses reads while its state says so. */
  readonly plugin: FastifyPluginAsync
  readonly #journal: Journal
  readonly #lines: LinesOfReads
  readonly #failures: AuthFailures
  readonly #reads: AuditedReads
  readonly #version: string
  readonly #isRequired: boolean
  readonly #isWorking: () => boolean
  #isStarted = false

  constructor ({ output, last, clientOf, isRequired, isWorking, version, salt }: AuditOptions) {
    this.#version = version
    this.#isRequired = isRequired
    this.#isWorking = isWorking
    this.#journal = new Journal({ output, last })
    this.#lines = new LinesOfReads(this.#journal, (count) => { this.lost(count) })
    this.#failures = new AuthFailures((address, count) => { this.#append('auth.failed', 'denied', { count }, { source: { address } }) })
    this.#reads = new AuditedReads({ lines: this.#lines, failures: this.#failures, clientOf, salt })
    this.plugin = fp(async (app) => {
      app.addHook('onSend', (request, _reply, payload, next) => {
        this.#reads.onAnswer(request)
        next(null, payload)
      })
      if (!isRequired) return
      app.addHook('onRequest', (request, _reply, next) => {
        if (this.state !== 'refusing' || request.routeOptions.config.load === 'probe') next()
        else next(new HttpProblem('audit_unavailable'))
      })
    }, { name: 'audit' })
  }

  get state (): AuditState {
    if (this.#isWorking() && this.#lines.hasRoom) return 'working'
    return this.#isRequired ? 'refusing' : 'failing'
  }

  get observer (): Observer {
    return this.#reads
  }

  /** Lines that were dropped because their revisions took too long. */
  get dropped (): number {
    return this.#lines.dropped
  }

  started (): void {
    this.#isStarted = true
    this.#append('service.started', 'success', {}, { version: this.#version })
  }

  /** Reports the state of a policy file now, and each change of it. */
  follow (file: FollowedPolicy): void {
    const loaded = (): void => { this.#append('policy.loaded', 'success', { file: file.path, digest: file.digest }) }
    loaded()
    file.on('changed', loaded)
    file.on('failed', (error) => {
      if (error !== undefined) this.#append('policy.rejected', 'failure', { file: file.path, problem: error.message })
    })
  }

  catalogChanged (change: Pick<CatalogChange, 'added' | 'changed' | 'removed'>): void {
    for (const kind of ['added', 'changed', 'removed'] as const) {
      for (const skill of change[kind]) this.#append('skill.changed', 'success', { skill, change: kind })
    }
  }

  /** Lines were lost on their path to the file. */
  lost (lines: number): void {
    this.#append('audit.dropped', 'error', { lines })
  }

  /** A trust policy takes a skill away, or gives it back. */
  judged ({ skill, root, isServed, report: { signer, checked_revision: revision }, reason }: TrustChange): void {
    const target = { skill, root, signer: signer ?? undefined, ...!isServed && { code: reason?.code, problem: reason?.message }, revision: revision === '' ? undefined : revision }
    if (isServed) this.#append('skill.released', 'success', target)
    else this.#append('skill.quarantined', 'denied', target)
  }

  /** Writes all that waits. */
  async close (): Promise<void> {
    await this.#reads.lastClosed()
    this.#failures.close()
    await this.#lines.close()
    if (this.#isStarted) this.#append('service.stopped', 'success', {}, { version: this.#version })
  }

  /** The same while the process ends without waiting for anything. */
  closeNow (): void {
    this.#failures.close()
    this.#lines.closeNow()
  }

  #append (event: AuditEvent, outcome: Outcome, target: object, fields: object = {}): void {
    this.#journal.append(Date.now(), { event, outcome, ...fields, target })
  }
}
