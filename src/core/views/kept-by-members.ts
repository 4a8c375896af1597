import { compareCodePoints } from '../shared/text.ts'
import type { ViewMember } from './view-member.ts'

/** What one root keeps of a skill: its revisions with the numbers of their order. */
interface KeptBy {
  readonly skills: ViewMember['skills']
  readonly revisions: ReadonlyMap<string, number>
}

/** The kept revisions of each root. A skill that comes hides those of later roots, whose time runs from then on. */
export function keptBy (members: readonly ViewMember[], name: string): readonly KeptBy[] {
  let hiddenSince = Infinity
  return members.filter(({ allows }) => allows(name)).map(({ skills }) => {
    const revisions = skills.files.kept.revisionsOf(name, hiddenSince)
    hiddenSince = Math.min(hiddenSince, skills.files.kept.arrivalOf(name) ?? Infinity)
    return { skills, revisions }
  })
}

/** The newest first. */
export function keptRevisionsOf (members: readonly ViewMember[], name: string): readonly string[] {
  const all = keptBy(members, name).flatMap(({ revisions }) => [...revisions])
  return [...new Set(all.sort(([, a], [, b]) => b - a).map(([revision]) => revision))]
}

/** Names of the skills that have a revision in memory. */
export function keepersOf (members: readonly ViewMember[], revision: string): readonly string[] {
  const names = members.flatMap(({ skills, allows }) => skills.files.kept.namesOf(revision).filter((name) => allows(name)))
  return [...new Set(names)].filter((name) => keptRevisionsOf(members, name).includes(revision)).sort(compareCodePoints)
}
