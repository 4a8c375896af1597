import type { RootOptions } from '../core/roots/root-reports.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { GithubState } from './git/github.ts'

/** Keeps the listing of one root near what it stands for. */
export interface Keeper {
  readonly root: RootOptions & { readonly name: string }
  readonly status: SourceStatus
  /** What it published, when it came from there. */
  readonly github?: GithubState | undefined
  /** A hook that may ask for a check, with the file of its secret. */
  readonly hook?: { readonly secretFile: string, readonly hint: () => void } | undefined
  /** Takes up what is there without the network. */
  open (): Promise<void>
  /** Begins to check at its own pace. */
  start (): void
  /** Checks soon: something may be new. */
  hint (): void
  /** Checks now; a call during a check gets one that begins afterwards. */
  readonly sync: () => Promise<void>
  close (): Promise<void>
}
