import type { CatalogSkill, SkillMetadata } from '../shared/skill.ts'
import { compareCodePoints, positionIn, sameOr } from '../shared/text.ts'
import type { ViewMember } from './view-member.ts'

/** What the lists need of a view's root. */
export interface ListedMember extends Pick<ViewMember, 'allows'> {
  readonly skills: Pick<ViewMember['skills'], 'namesNow' | 'availableNow'>
}

/** What the roots of a view give together: of several skills of a name, the one in the earliest root. */
export interface MergedNames {
  /** Sorted by code point. The same array as before when the names are the same. */
  readonly names: readonly string[]
  /** The position of each name's root among the members. */
  readonly owners: ReadonlyMap<string, number>
  /** The positions of later roots that have the name too. */
  readonly shadowing: ReadonlyMap<string, readonly number[]>
}

const NO_NAMES: MergedNames = { names: [], owners: new Map(), shadowing: new Map() }

/**
 * What the roots of a view give together, for `View`. The lists are merged again only when one of them is another. `bench/results.md` has
 * the figure: 49 more views of 10,000 skills.
 */
export class MemberLists<Member extends ListedMember = ViewMember> {
  readonly members: readonly Member[]
  #lists: ReadonlyArray<readonly string[]> | undefined
  #merged = NO_NAMES
  #availableLists: ReadonlyArray<readonly CatalogSkill[]> | undefined
  #availableOf: MergedNames | undefined
  #available: readonly SkillMetadata[] = []
  #generation: number
  #counted: readonly [names: readonly string[], available: readonly SkillMetadata[]] | undefined

  /** @param generation to go on from */
  constructor (members: readonly Member[], generation = 0) {
    this.members = members
    this.#generation = generation
  }

  namesNow (): MergedNames {
    const known = this.#lists
    // Called several times for each request.
    if (known === undefined || this.members.some(({ skills }, index) => skills.namesNow() !== known[index])) {
      const lists = this.members.map(({ skills }) => skills.namesNow())
      const changed = this.#lists && changedNames(this.#lists, lists)
      this.#merged = changed === undefined ? mergeNames(this.members, lists, this.#merged) : updateNames(this.members, lists, this.#merged, changed)
      this.#lists = lists
    }
    return this.#merged
  }

  /** Whose skill a name is, as of the index. */
  ownerOf (name: string): Member | undefined {
    return this.members[this.namesNow().owners.get(name) ?? -1]
  }

  /** Whether one of these skills has moved to another root since. */
  hasMovedSince ({ owners }: MergedNames): boolean {
    const now = this.namesNow().owners
    return now !== owners && this.members.length > 1 && [...owners].some(([name, owner]) => (now.get(name) ?? owner) !== owner)
  }

  /** The later members that also have a skill of this name. */
  hiddenBy (name: string): readonly Member[] {
    return (this.namesNow().shadowing.get(name) ?? []).flatMap((index) => this.members[index] ?? [])
  }

  availableNow (): readonly SkillMetadata[] {
    const lists = this.members.map(({ skills }) => skills.availableNow())
    const merged = this.namesNow()
    if (merged !== this.#availableOf || sameOr(this.#availableLists, lists) === lists) {
      const own = lists.flatMap((list, index) => list.filter(({ name }) => merged.owners.get(name) === index))
      if (lists.length > 1) own.sort((a, b) => compareCodePoints(a.name, b.name))
      this.#available = sameOr(this.#available, own.map(({ metadata }) => metadata))
      this.#availableOf = merged
      this.#availableLists = lists
    }
    return this.#available
  }

  /** Increases whenever the lists change, from the first question on. */
  get generation (): number {
    const [names, available] = [this.namesNow().names, this.availableNow()]
    if (names !== this.#counted?.[0] || available !== this.#counted[1]) {
      this.#counted = [names, available]
      this.#generation++
    }
    return this.#generation
  }
}

/** @param before the result before, whose array is used again if its names are the same */
function mergeNames (members: readonly ListedMember[], lists: ReadonlyArray<readonly string[]>, before: MergedNames): MergedNames {
  const owners = new Map<string, number>()
  const shadowing = new Map<string, number[]>()
  for (const [index, member] of members.entries()) {
    for (const name of lists[index] ?? []) {
      if (!member.allows(name)) continue
      if (!owners.has(name)) owners.set(name, index)
      else {
        const hidden = shadowing.get(name)
        if (hidden === undefined) shadowing.set(name, [index])
        else hidden.push(index)
      }
    }
  }
  const names = [...owners.keys()]
  if (members.length > 1) names.sort(compareCodePoints)
  return { names: sameOr(before.names, names), owners, shadowing }
}

/** With more changed names than this, the lists are merged from scratch. */
const MAX_UPDATED = 500

/** Keyed by the newer list: all views of a root ask for the same difference. */
const differences = new WeakMap<readonly string[], { readonly before: readonly string[], readonly names: readonly string[] }>()

/** The names that are in one of two sorted lists. */
function differenceOf (before: readonly string[], now: readonly string[]): readonly string[] {
  const known = differences.get(now)
  if (known?.before === before) return known.names
  const names: string[] = []
  for (let i = 0, j = 0; i < before.length || j < now.length;) {
    const [a, b] = [before[i], now[j]]
    if (a === b) [i, j] = [i + 1, j + 1]
    else if (b === undefined || (a !== undefined && compareCodePoints(a, b) < 0)) names.push(before[i++] ?? '')
    else names.push(now[j++] ?? '')
  }
  differences.set(now, { before, names })
  return names
}

/** The names that were added to a list or removed from one; undefined for more than MAX_UPDATED. */
function changedNames (before: ReadonlyArray<readonly string[]>, now: ReadonlyArray<readonly string[]>): ReadonlySet<string> | undefined {
  const names = new Set(now.flatMap((list, index) => list === before[index] ? [] : differenceOf(before[index] ?? [], list)))
  return names.size > MAX_UPDATED ? undefined : names
}

/** The same as `mergeNames`, without asking for the names that stay: a new skill reaches fifty views of 10,000 skills at once. */
function updateNames (members: readonly ListedMember[], lists: ReadonlyArray<readonly string[]>, before: MergedNames, changed: ReadonlySet<string>): MergedNames {
  const changes = Array.from(changed, (name) => {
    const indexes = members.flatMap((member, index) => member.allows(name) && hasName(lists[index] ?? [], name) ? index : [])
    return { name, owner: indexes[0], hidden: indexes.slice(1) }
  }).filter(({ name, owner, hidden }) => owner !== before.owners.get(name) || sameOr(before.shadowing.get(name) ?? [], hidden) === hidden)
  if (changes.length === 0) return before
  const owners = new Map(before.owners)
  const shadowing = new Map(before.shadowing)
  const names = before.names.slice()
  for (const { name, owner, hidden } of changes) {
    const position = positionIn(names, name, itself)
    if (owner === undefined) names.splice(position, 1)
    else if (!owners.has(name)) names.splice(position, 0, name)
    if (owner === undefined) owners.delete(name)
    else owners.set(name, owner)
    if (hidden.length === 0) shadowing.delete(name)
    else shadowing.set(name, hidden)
  }
  return { names: sameOr(before.names, names), owners, shadowing }
}

function itself (name: string): string {
  return name
}

function hasName (list: readonly string[], name: string): boolean {
  return list[positionIn(list, name, itself)] === name
}
