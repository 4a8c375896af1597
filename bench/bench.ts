import type { LongRun } from '../scripts/long-run.ts'
import type { Cores } from './cores.ts'

/** What each part of the bench is handed. */
export interface Bench {
  readonly run: LongRun
  readonly cores: Cores
  /** A temporary folder of the whole run. */
  readonly folder: string
}
