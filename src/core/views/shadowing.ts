import type { Verdict } from '../content/trust/trust-policy.ts'
import { finding } from '../format/findings.ts'
import type { MainFilePreference } from '../format/main-files.ts'
import type { SkillArchive } from '../content/archive.ts'
import type { SkillState } from '../content/skill-state.ts'
import type { FileContent } from '../files/file-content.ts'
import type { ServableFile } from '../files/file-store.ts'
import type { CatalogSkill, Finding, Manifest } from '../ground/skill.ts'

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
export class ShadowingState implements SkillState {
  readonly skill: CatalogSkill
  readonly #state: SkillState

  constructor (state: SkillState, roots: readonly string[]) {
    this.skill = withShadowing(state.skill, roots)
    this.#state = state
  }

  manifest (): Promise<Manifest> {
    return this.#state.manifest()
  }

  fileFindings (): Promise<readonly Finding[]> {
    return this.#state.fileFindings()
  }

  trust (): Promise<Verdict | undefined> {
    return this.#state.trust()
  }

  mainFile (preference?: MainFilePreference): Promise<FileContent> {
    return this.#state.mainFile(preference)
  }

  file (path: string): Promise<FileContent> {
    return this.#state.file(path)
  }

  open (path: string): Promise<ServableFile> {
    return this.#state.open(path)
  }

  archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#state.archive(nameOf)
  }
}

/** @param roots of the skills that are hidden */
function shadowingFinding (roots: readonly string[]): Finding {
  const names = roots.map((root) => `'${root}'`)
  if (names.length === 1) return finding('shadowed', `a skill of the same name in the root ${names.join()} is hidden by this one`, 'Rename or remove one of the two folders')
  return finding('shadowed', `skills of the same name in the roots ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are hidden by this one`, 'Rename or remove all of these folders but one')
}
