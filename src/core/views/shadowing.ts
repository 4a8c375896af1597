import { finding } from '../format/findings.ts'
import type { SkillState } from '../content/skill-state.ts'
import type { CatalogSkill, Finding } from '../shared/skill.ts'

/** One object for each skill and list of roots: answers are remembered by it. */
const shadowing = new WeakMap<CatalogSkill, Map<string, CatalogSkill>>()

/** The skill with the finding that it hides those of later roots. Which skill is hidden depends on the view, so the index does not have this finding. */
export function withShadowing (skill: CatalogSkill, roots: readonly string[]): CatalogSkill {
  let byRoots = shadowing.get(skill)
  if (byRoots === undefined) shadowing.set(skill, byRoots = new Map())
  const key = JSON.stringify(roots)
  let found = byRoots.get(key)
  if (found === undefined) byRoots.set(key, found = { ...skill, findings: [...skill.findings, shadowingFinding(roots)] })
  return found
}

/** The same for a state of it. */
export function shadowingState (state: SkillState, roots: readonly string[]): SkillState {
  return {
    skill: withShadowing(state.skill, roots),
    manifest: () => state.manifest(),
    fileFindings: () => state.fileFindings(),
    mainFile: (preference) => state.mainFile(preference),
    file: (path) => state.file(path),
    open: (path) => state.open(path),
    archive: (nameOf) => state.archive(nameOf)
  }
}

/** @param roots of the skills that are hidden */
function shadowingFinding (roots: readonly string[]): Finding {
  const names = roots.map((root) => `'${root}'`)
  if (names.length === 1) return finding('shadowed', `a skill of the same name in the root ${names.join()} is hidden by this one`, 'Rename or remove one of the two folders')
  return finding('shadowed', `skills of the same name in the roots ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are hidden by this one`, 'Rename or remove all of these folders but one')
}
