import { DiskGuard } from './disk/network/guard.ts'
import { PollPhase } from './disk/poll-phase.ts'
import { FileStore, type RoomForFile } from './files/file-store.ts'

/** The stats of a request, the calls to disks that hang, and the memory for contents. */
export interface SharedDisk {
  readonly phase: PollPhase
  readonly guard: DiskGuard
  readonly store: FileStore
}

export function createSharedDisk (diskAnswerMs?: number, hasRoom?: RoomForFile): SharedDisk {
  const phase = new PollPhase()
  return { phase, guard: new DiskGuard(diskAnswerMs), store: new FileStore(phase, undefined, hasRoom) }
}
