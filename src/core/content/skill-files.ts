import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import { changed } from '../disk/refused.ts'
import type { PathFilter } from '../disk/hidden.ts'
import { RevisionChangedError, SkillError } from '../shared/errors.ts'
import type { FileContent } from '../files/file-content.ts'
import type { ServableFile } from '../files/file-store.ts'
import { Signal } from '../shared/signal.ts'
import type { CatalogSkill } from '../shared/skill.ts'
import type { CheckedFolders } from './trust/gate.ts'
import { hidesSome, type KeptRevision, type KeptRevisions } from './kept/kept-revisions.ts'
import type { Inspected, Unread } from './manifest.ts'
import { pathInside } from './path-inside.ts'
import { skillSentence } from './refusal-sentences.ts'
import { KeptState } from './kept/kept-state.ts'
import { type LiveState, type SkillState, SkillStates, type SkillStatesOptions } from './skill-state.ts'

/** A revision that a caller asked for: `sha256:<hex>`, or `current` for whatever is there. */
export type RevisionChoice = string

/** What is in the skills: main files, files, and whole states of them. Every failure is a `SkillError`. */
export class SkillFiles {
  /** Each state that `inspect` gave. */
  readonly inspected = new Signal<CheckedFolders>()
  readonly #parts: SkillStatesOptions
  readonly #states: SkillStates

  constructor (parts: SkillStatesOptions) {
    const { root, catalog, kept } = parts
    const hide = (name: string) => { kept.hide(name, () => catalog.last.get(name)?.filter, true) }
    this.#parts = parts
    this.#states = new SkillStates(parts)
    catalog.changed.subscribe(({ added, changed, removed }) => {
      for (const name of added) kept.arrive(name)
      for (const name of changed) kept.expire(name)
      for (const name of removed) kept.leave(name)
      for (const name of [...added, ...changed]) hide(name)
    })
    // A skill that is hidden whole is gone from the catalog, and its own rules with it.
    root.changed.subscribe(({ names }) => { for (const name of names) kept.hide(name, () => root.filterOf(name)) })
  }

  /**
   * What `answer` makes of the skill of this name in one state.
   * @param revision the state that is wanted; default: the present one, without working out its revision
   * @param present the skill of that name, in whichever root: a kept revision from before it hid something is not given
   * @throws {SkillError} `revision_changed` when the skill has another revision and the wanted one is not kept
   */
  read<T> (name: string, answer: (state: SkillState) => Promise<T>, revision?: RevisionChoice, present?: Pick<IndexedSkill, 'filter'>): Promise<T> {
    return revision === undefined ? this.#readLive(name, answer) : this.#readRevision(name, answer, revision, present)
  }

  /** The same of the present state for a list of many skills: see `SkillSource.readListed`. */
  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#readLive(name, answer, true)
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    const { catalog, gate } = this.#parts
    const known = await catalog.find(name)
    if (known === undefined || gate?.guards() !== true) return known
    try {
      return await this.#readLive(name, async ({ skill }) => skill)
    } catch (error) {
      if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
      throw error
    }
  }

  async readMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    return this.mainFileAtOnce(name, preference) ?? await this.read(name, (state) => state.mainFile(preference))
  }

  async readFile (name: string, path: string): Promise<FileContent> {
    return this.fileAtOnce(name, path) ?? await this.#readLive(name, (state) => state.file(path))
  }

  async openFile (name: string, path: string): Promise<ServableFile> {
    const content = this.fileAtOnce(name, path)
    return content === undefined ? await this.#readLive(name, (state) => state.open(path)) : { kind: 'content', content }
  }

  /** The main file, if it is in memory and the disk says at once that it holds; else undefined. */
  mainFileAtOnce (name: string, preference: MainFilePreference): FileContent | undefined {
    return this.#contentAtOnce(name, (mainFiles) => orderMainFiles(mainFiles, preference)[0])
  }

  /** The same for a file. */
  fileAtOnce (name: string, path: string): FileContent | undefined {
    return this.#contentAtOnce(name, (mainFiles) => pathInside(name, mainFiles, path))
  }

  /** Which revisions can be read from memory. The present one is among them if it was handed out. */
  get kept (): Pick<KeptRevisions, 'arrivalOf' | 'namesOf' | 'revisionsOf'> {
    return this.#parts.kept
  }

  /**
   * The state of all files of a skill; undefined when there is no such skill. See `ManifestStore.inspect`.
   * @throws {SkillError} `skill_changing` when no state holds, `file_io_error` when the disk fails
   */
  async inspect (name: string, known?: Inspected): Promise<Inspected | Unread | undefined> {
    try {
      return await this.#readLive(name, (state) => this.#inspect(state, known), true)
    } catch (error) {
      // Not there, or no root, or gone meanwhile.
      if (error instanceof SkillError && error.code !== 'file_io_error' && error.code !== 'skill_changing') return undefined
      throw error
    }
  }

  async #inspect (state: LiveState, known: Inspected | undefined): Promise<Inspected | Unread> {
    const { manifests, gate } = this.#parts
    const { skill, disk } = state
    try {
      const inspection = await manifests.inspect(disk, skill, known)
      if ('ended' in inspection) return inspection
      if (gate?.guards() === true && inspection.state.revision !== await state.revision()) throw changed('the skill changed after it was checked')
      this.inspected.emit({ folder: skill.folder, inside: inspection.inside })
      return inspection.state
    } catch (error) {
      throw skillSentence(error, skill.name)
    }
  }

  close (): void {
    this.#parts.manifests.close()
    this.#parts.kept.clear()
  }

  /**
   * The fast way of most answers: a file in memory, if the disk says at once that file and skill are unchanged. Undefined for
   * all else, which a state of the skill answers. Without it an answer costs 5 % more CPU.
   */
  #contentAtOnce (name: string, pathIn: (mainFiles: readonly string[]) => string | undefined): FileContent | undefined {
    const { catalog, gate, root, store } = this.#parts
    const skill = catalog.findAtOnce(name)
    if (skill === undefined || gate?.guards() === true) return undefined
    const { folder, filter, mainFile, mainFiles, digest } = skill
    const path = pathIn(mainFiles)
    const content = path === undefined ? undefined : store.contentAtOnce({ disk: root.disk, folder: folder.realPath, path, filter })
    return path === mainFile?.name && content?.digest !== digest ? undefined : content
  }

  #readLive<T> (name: string, answer: (state: LiveState) => Promise<T>, isListed?: boolean): Promise<T> {
    return this.#states.read(name, () => this.#parts.catalog.find(name), answer, isListed)
  }

  async #readRevision<T> (name: string, answer: (state: SkillState) => Promise<T>, revision: RevisionChoice, present: Pick<IndexedSkill, 'filter'> | undefined): Promise<T> {
    const { kept, root } = this.#parts
    const find = async (now: PathFilter | undefined, isWhole: boolean) => {
      kept.hide(name, () => now, isWhole)
      const found = await kept.find(name, revision)
      // Only compared: what a skill of another root hides is not hidden in views without that root.
      return found === undefined || (present?.filter !== undefined && await hidesSome(present.filter, found)) ? undefined : found
    }
    const served = async (found: KeptRevision | undefined) => {
      return found === undefined || root.listed?.allows?.(name, found.manifest.revision) === false ? undefined : new KeptState(found)
    }
    try {
      return await this.#readLive(name, async (state) => {
        if (revision === 'current') return await answer(state)
        // Before the present one is made, which may take its place.
        const found = await find(state.skill.filter, true)
        if (found === undefined ? revision === (await state.manifest()).revision : await isOfRevision(state, revision)) return await answer(state)
        const before = await served(found)
        if (before === undefined) throw new RevisionChangedError((await state.manifest()).revision)
        return await answer(before)
      })
    } catch (error) {
      // The skill is gone, or no state of it holds: the kept state is whole.
      const before = error instanceof SkillError && (error.code === 'skill_not_found' || error.code === 'skill_changing') ? await served(await find(root.filterOf(name), false)) : undefined
      if (before === undefined) throw error
      return await answer(before)
    }
  }
}

/** A skill that has become too large, or whose disk fails, is of no revision: a kept one can be read all the same. */
async function isOfRevision (state: LiveState, revision: string): Promise<boolean> {
  try {
    return await state.revision() === revision
  } catch (error) {
    if (!(error instanceof SkillError) || error.code === 'skill_changing' || error.code === 'skill_not_found') throw error
    return false
  }
}
