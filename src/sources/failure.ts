import type { SourceStatus } from '../schemas/health.ts'
import type { SourceError } from './source-error.ts'

/** Whether a source delivers; if not, why and since when. */
export class Failure {
  #error: SourceError | undefined
  #since: Date | undefined

  get since (): Date | undefined {
    return this.#since
  }

  clear (): void {
    this.#error = undefined
    this.#since = undefined
  }

  /** @returns whether it fails in another way than before: failures of one kind in a row are logged once */
  set (error: SourceError): boolean {
    const isSame = this.#error?.code === error.code && this.#error.message === error.message
    this.#error = error
    this.#since ??= new Date()
    return !isSame
  }

  /** @param isPublished whether there is something to serve */
  statusOf (isPublished: boolean): Pick<SourceStatus, 'state' | 'failing_since' | 'error'> {
    if (this.#error === undefined || this.#since === undefined) return { state: isPublished ? 'ok' : 'waiting' }
    const { code, message } = this.#error
    const since = this.#since.toISOString()
    return { state: isPublished ? 'stale' : 'failed', failing_since: since, error: { code, message } }
  }
}
