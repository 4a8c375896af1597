import { type KeptRevisionsOptions, RevisionMemory } from './content/kept/revision-memory.ts'
import { DiskGuard } from './disk/network/guard.ts'
import { PollPhase } from './disk/poll-phase.ts'
import { FileStore, type RoomForFile } from './files/file-store.ts'

/** What the roots of a skill manager use together. */
export interface SharedParts {
  /** The stats of a request. */
  readonly phase: PollPhase
  /** The calls to disks that hang. */
  readonly guard: DiskGuard
  /** The memory for contents. */
  readonly store: FileStore
  readonly revisions: RevisionMemory
}

interface SharedPartsOptions {
  readonly guard?: DiskGuard | undefined
  readonly hasRoom?: RoomForFile | undefined
  readonly keep?: Partial<KeptRevisionsOptions> | undefined
}

export function createSharedParts ({ guard = new DiskGuard(), hasRoom, keep }: SharedPartsOptions): SharedParts {
  const phase = new PollPhase()
  return { phase, guard, store: new FileStore(phase, undefined, hasRoom), revisions: new RevisionMemory(keep) }
}
