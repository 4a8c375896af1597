import { basename } from 'node:path'
import type { SkillMetadata } from '../ground/skill.ts'
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

const NO_NAMES: MergedNames = { names: [], owners: new Map(), shadowing: new Set() }

/** What the roots of a view give together, merged again only when one of their lists is another. */
export class MemberLists {
  #members: readonly ViewMember[]
  #lists: ReadonlyArray<readonly string[]> | undefined
  #merged = NO_NAMES
  #availableLists: ReadonlyArray<readonly SkillMetadata[]> | undefined
  #availableOf: MergedNames | undefined
  #available: readonly SkillMetadata[] = []

  constructor (members: readonly ViewMember[]) {
    this.#members = members
  }

  setMembers (members: readonly ViewMember[]): void {
    this.#members = members
    this.#lists = undefined
    this.#availableOf = undefined
  }

  namesNow (): MergedNames {
    const lists = this.#members.map(({ skills }) => skills.namesNow())
    if (!isSameList(this.#lists, lists)) {
      this.#merged = mergeNames(this.#members, lists, this.#merged)
      this.#lists = lists
    }
    return this.#merged
  }

  availableNow (): readonly SkillMetadata[] {
    const lists = this.#members.map(({ skills }) => skills.availableNow())
    const merged = this.namesNow()
    if (merged !== this.#availableOf || !isSameList(this.#availableLists, lists)) {
      const byName = new Map<string, SkillMetadata>()
      for (const [index, list] of lists.entries()) {
        for (const metadata of list) {
          const name = basename(metadata.skillPath)
          if (merged.owners.get(name) === index) byName.set(name, metadata)
        }
      }
      this.#available = sameOr(this.#available, merged.names.flatMap((name) => byName.get(name) ?? []))
      this.#availableOf = merged
      this.#availableLists = lists
    }
    return this.#available
  }
}

/** @param before the result before, whose array is used again if its names are the same */
function mergeNames (members: readonly ViewMember[], lists: ReadonlyArray<readonly string[]>, before: MergedNames): MergedNames {
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
