import type { RootOptions } from './roots/root.ts'
import type { KeptRevisionsOptions } from './content/kept/revision-memory.ts'
import type { Disk } from './disk/disk.ts'
import type { DiskGuard } from './disk/network/guard.ts'
import type { RoomForFile } from './files/file-store.ts'
import type { CoreLog } from './shared/log.ts'
import type { RefreshTimes } from './refresher.ts'
import type { SkippedEntry } from './roots/scan-root.ts'
import type { WatcherFactory } from './watch/watcher.ts'

export interface SkillManagerOptions {
  /** Absolute paths, or folders with names; the earlier wins. They need not exist. */
  readonly projectRoots: readonly (string | RootOptions)[]
  /** Loses to every project root. */
  readonly personalRoot?: string | RootOptions
  /** Absolute paths: links in a root that leave it are followed when they lead into one of these folders. */
  readonly linkTargets?: readonly string[] | undefined
  /** Ask the disk at intervals instead of the kernel for events. */
  readonly polling?: boolean
  readonly log?: CoreLog
  /** Told of the entries of a root that could be skills and are left out, which the log names too. */
  readonly onSkipped?: ((entries: readonly SkippedEntry[]) => void) | undefined
  /** How a watcher is made; `false` runs without one. */
  readonly watcher?: WatcherFactory | false
  /** The file system, for all roots. Default: what fits the kind of disk of each root. */
  readonly disk?: Disk
  readonly times?: RefreshTimes
  /** Shared with whoever else reads these folders. Default: its own. */
  readonly guard?: DiskGuard
  /** Asked before a large file is read for an answer. Default: there is always room. */
  readonly hasRoom?: RoomForFile
  /** Which revisions stay readable after a change. Default: KEPT_REVISION_MS, KEPT_REVISION_BYTES. */
  readonly keep?: Partial<KeptRevisionsOptions>
}
