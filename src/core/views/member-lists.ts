import { compareCodePoints } from '../ground/text.ts'
import type { ViewMember } from './view-member.ts'

/** What the roots of a view give together: of several skills of a name, the one in the earliest root. */
export interface MergedNames {
  /** Sorted by code point. The same array as before when the names are the same. */
  readonly names: readonly string[]
  /** The position of each name's root among the members. */
  readonly owners: ReadonlyMap<string, number>
  /** Names that a later root of the view has too. */
  readonly shadowing: ReadonlySet<string>
}

export const NO_NAMES: MergedNames = { names: [], owners: new Map(), shadowing: new Set() }

/** @param before the result before, whose array is used again if its names are the same */
export function mergeNames (members: readonly ViewMember[], lists: ReadonlyArray<readonly string[]>, before: MergedNames): MergedNames {
  const owners = new Map<string, number>()
  const shadowing = new Set<string>()
  for (const [index, member] of members.entries()) {
    for (const name of lists[index] ?? []) {
      if (!member.allows(name)) continue
      if (owners.has(name)) shadowing.add(name)
      else owners.set(name, index)
    }
  }
  const names = [...owners.keys()]
  if (members.length > 1) names.sort(compareCodePoints)
  return { names: sameOr(before.names, names), owners, shadowing }
}

/** The array before, if the new one has the same items. */
export function sameOr<T> (before: readonly T[], now: readonly T[]): readonly T[] {
  return before.length === now.length && now.every((item, index) => item === before[index]) ? before : now
}

export function isSameList<T> (a: readonly T[] | undefined, b: readonly T[]): boolean {
  return a?.length === b.length && b.every((item, index) => item === a[index])
}
