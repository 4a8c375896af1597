import type { RootOptions } from '../core/roots/root.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { GithubState } from './git/github.ts'

/** What a webhook may ask for, and the file of the secret that its sender has. */
export interface SourceHook {
  readonly secretFile: string
  /** Checks soon: something may be new. */
  hint (): void
}

/** Keeps the listing of one root near what it stands for. */
export interface Keeper {
  readonly root: RootOptions & { readonly name: string }
  readonly status: SourceStatus
  /** What it published, when it came from there. */
  readonly github?: GithubState | undefined
  readonly hook?: SourceHook | undefined
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
