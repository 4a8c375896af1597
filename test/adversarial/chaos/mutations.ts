import * as files from './file-mutations.ts'
import * as folders from './folder-mutations.ts'
import type { World } from './world.ts'

/**
 * One change as a person or a program makes it: some system calls, and between them moments in which anybody may look.
 * One that finds nothing to change does nothing.
 */
export type Mutation = (world: World) => Iterable<unknown>

type Weighted = readonly [weight: number, mutation: Mutation]

const MUTATIONS: readonly Weighted[] = [
  [12, files.saveDocument],
  [14, files.saveFile],
  [5, files.growFile],
  [4, files.removeFile],
  [4, files.renameFile],
  [3, files.renameInnerFolder],
  [5, files.linkFile],
  [3, files.linkHard],
  [3, files.lockFile],
  [5, files.writeIgnoreFile],
  [4, files.leaveJunk],
  [2, folders.lockSkill],
  [6, folders.addSkill],
  [4, folders.removeSkill],
  [4, folders.renameSkill],
  [4, folders.moveSkill],
  [2, folders.exchangeSkills],
  [3, folders.replaceByFile],
  [3, folders.linkSkill],
  [2, folders.exchangeForLink],
  [1, folders.moveRootAway],
  [1, folders.replaceRoot],
  [1, folders.remakeRoot],
  [3, folders.exchangeLinked],
  [3, folders.repointRoot]
]

const ALL_WEIGHTS = MUTATIONS.reduce((sum, [weight]) => sum + weight, 0)

export function chooseMutation ({ random }: World): Mutation {
  let place = random.below(ALL_WEIGHTS)
  for (const [weight, mutation] of MUTATIONS) {
    place -= weight
    if (place < 0) return mutation
  }
  throw new RangeError('the weights do not add up')
}
