import { coalesce, createSlicer } from '../async.ts'
import { Catalog, type CatalogChange, type IndexedSkill } from './catalog.ts'
import type { SkillFolder } from './scan-root.ts'
import type { Disk } from '../disk/disk.ts'
import { documentError } from '../errors.ts'
import { indexSkill } from './index-skill.ts'
import { orderMainFiles } from './main-files.ts'
import type { PhaseStats } from '../disk/poll-phase.ts'
import type { RootSet } from './roots.ts'
import { isSameState } from '../disk/signature.ts'
import type { Signature } from '../skill.ts'

export interface LiveCatalogOptions {
  readonly roots: RootSet
  readonly stats: PhaseStats
  /** Told once a change is in place. Must not throw. */
  readonly onChange: (change: CatalogChange) => void
}

/** How often a question is asked anew when the disk changes under it. */
export const MAX_TURNS = 8

/**
 * The catalog, compared with the disk: one skill for whoever asks for it, some or all of them for the refresher
 *. What differs is read again, and put in place in one step.
 */
export class LiveCatalog {
  readonly #roots: RootSet
  readonly #stats: PhaseStats
  readonly #onChange: LiveCatalogOptions['onChange']
  /** Compares every skill, and reads again what is not as the index says. */
  readonly verifyAll = coalesce(() => this.verify(this.#catalog.names))
  #catalog = new Catalog()
  #sequence = 0
  #moves = 0

  constructor ({ roots, stats, onChange }: LiveCatalogOptions) {
    this.#roots = roots
    this.#stats = stats
    this.#onChange = onChange
  }

  /** The state that was seen last, without a look at the disk. */
  get last (): Catalog {
    return this.#catalog
  }

  /** Goes up with all that is found to be another file or folder than before, whether it says something else or not. */
  get moves (): number {
    return this.#moves
  }

  /** Names of the skills that have not been read from their present folder. */
  get unread (): readonly string[] {
    return this.#catalog.names.filter((name) => {
      const skill = this.#catalog.get(name)
      return skill === undefined || !this.#catalog.isInPlace(skill)
    })
  }

  /**
   * The skill of this name as it is on the disk now; undefined when there is none.
   * @throws {SkillError} `folderError`'s sentences without a root
   */
  async find (name: string): Promise<IndexedSkill | undefined> {
    // Each turn ends with the skill, or with a root listed anew; a name that keeps coming and going is not there.
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      // What was seen before it went away says nothing about where it went.
      if (turn > 0) this.#stats.forget()
      // A root before the skill's own may have got a folder of that name; an unknown name may be in any.
      const root = this.#catalog.folders.get(name)?.root
      await this.#roots.sync(root, root === undefined)
      const folder = this.#catalog.folders.get(name)
      // It went to a root that was not looked at, in somebody else's look.
      if (root !== undefined && (folder === undefined || folder.root > root)) continue
      if (folder === undefined) {
        this.#roots.requireOne()
        return undefined
      }
      const known = this.#catalog.get(name)
      if (known !== undefined && await this.#isFresh(known)) return known
      const loaded = await this.#load(folder)
      if (loaded === undefined) await this.#roots.rescan(folder.root)
      // What may not be read may be the root's doing.
      else if (loaded.refused !== undefined) await this.#roots.sync(folder.root + 1)
      if (loaded !== undefined && this.#catalog.folders.get(name) === folder) {
        this.#commit([loaded])
        return loaded
      }
    }
    return undefined
  }

  /** The skill with this frontmatter name, as it is on the disk now; undefined when the last state knows none, or it has another name now. */
  async findByLabel (label: string): Promise<IndexedSkill | undefined> {
    const name = this.#catalog.folderOfLabel(label)
    const skill = name === undefined ? undefined : await this.find(name)
    return skill?.metadata.name === label ? skill : undefined
  }

  /**
   * What `answer` makes of the skill of this name. A failure, or an answer that took more than a turn of the event loop,
   * counts only while the skill is still what it was: otherwise its folder was taken away or exchanged under the question,
   * which then goes to what the name means now.
   * @param discard gives back an answer that does not count
   */
  async ask<T> (name: string, answer: (skill: IndexedSkill) => Promise<T>, discard?: (value: T) => unknown): Promise<T> {
    for (let turn = 1; ; turn++) {
      const phase = this.#stats.phase
      const skill = await this.find(name)
      if (skill === undefined) throw documentError.skillNotFound(name)
      const root = this.#roots.signatureOf(skill.folder)
      try {
        const value = await answer(skill)
        if (turn === MAX_TURNS || phase === this.#stats.phase || await this.#isStill(skill, root)) return value
        await discard?.(value)
      } catch (error) {
        if (turn === MAX_TURNS || await this.#isStill(skill, root)) throw error
      }
    }
  }

  /** Reads again which of these skills are not as the index says, in slices; each slice is one step of the catalog. */
  async verify (names: Iterable<string>): Promise<void> {
    const yieldIfNeeded = createSlicer()
    let loaded: IndexedSkill[] = []
    const gone = new Set<number>()
    for (const name of names) {
      const folder = this.#catalog.folders.get(name)
      if (folder === undefined) continue
      const known = this.#catalog.get(name)
      if (known === undefined || !await this.#isFresh(known)) {
        const skill = await this.#load(folder)
        if (skill === undefined) gone.add(folder.root)
        else loaded.push(skill)
      }
      const pause = yieldIfNeeded()
      if (pause !== undefined) {
        this.#commit(loaded)
        loaded = []
        await pause
      }
    }
    this.#commit(loaded)
    for (const root of gone) await this.#roots.rescan(root)
  }

  /** A root has other folders than before: takes them over. */
  takeFolders (): void {
    const before = this.#catalog
    this.#moves++
    const { folders, shadowing } = this.#roots.merge()
    this.#catalog = before.withFolders(folders, shadowing)
    this.#announce([], [], before.names.filter((name) => !folders.has(name)))
  }

  /** Whether the disk still holds what the index says. */
  async #isFresh (skill: IndexedSkill): Promise<boolean> {
    const { folder, mainFile } = skill
    if (!skill.settled || skill.refused !== undefined || !this.#catalog.isInPlace(skill)) return false
    const disk = this.#roots.diskOf(folder)
    const now = await this.#stats.stat(disk, folder.path)
    if (now === undefined || !isSameState(now, skill.folderSignature)) return false
    if (folder.linked && await realpathOrNothing(disk, folder.path) !== folder.realPath) return false
    // A main file that was passed over may be of use now: a link's target made.
    if (mainFile?.name !== orderMainFiles(skill.mainFiles, 'SKILL.md')[0]) return false
    if (mainFile === undefined) return true
    const main = await this.#stats.stat(disk, skill.metadata.path)
    return main !== undefined && isSameState(main, mainFile.signature)
  }

  /** Never throws. Asks for the state of the root too: in nothing else one shows that went away and came back. */
  async #isStill ({ name, folder, folderSignature }: IndexedSkill, root: Signature | undefined): Promise<boolean> {
    this.#stats.forget()
    await this.#roots.sync(folder.root + 1)
    const now = await this.find(name).catch(() => undefined)
    const rootNow = this.#roots.signatureOf(folder)
    return now?.folder === folder && isSameState(now.folderSignature, folderSignature) &&
      root !== undefined && rootNow !== undefined && isSameState(root, rootNow)
  }

  async #load (folder: SkillFolder): Promise<IndexedSkill | undefined> {
    return await indexSkill(this.#roots.diskOf(folder), folder, ++this.#sequence, this.#catalog.shadowing.has(folder.name))
  }

  #commit (loaded: readonly IndexedSkill[]): void {
    const before = this.#catalog
    const added: string[] = []
    const changed: string[] = []
    const accepted = loaded.filter((skill) => {
      const { name } = skill
      const known = before.get(name)
      if (before.folders.get(name) !== skill.folder || (known?.sequence ?? 0) >= skill.sequence) return false
      // A disk that fails says nothing about the skill: what was known before stands.
      if (known !== undefined && skill.refused?.refusal === 'io_error') return false
      if (known === undefined || !isSameOnDisk(known, skill)) this.#moves++
      if (known === undefined) added.push(name)
      else if (!isSameToCallers(known, skill)) changed.push(name)
      return true
    })
    if (accepted.length === 0) return
    this.#catalog = before.withSkills(accepted, added.length + changed.length > 0)
    this.#announce(added, changed, [])
  }

  #announce (added: readonly string[], changed: readonly string[], removed: readonly string[]): void {
    if (added.length + changed.length + removed.length === 0) return
    this.#onChange({ generation: this.#catalog.generation, added, changed, removed })
  }
}

function isSameOnDisk (a: IndexedSkill, b: IndexedSkill): boolean {
  const [before, now] = [a.mainFile?.signature, b.mainFile?.signature]
  return isSameState(a.folderSignature, b.folderSignature) && (before === undefined || now === undefined ? before === now : isSameState(before, now))
}

/** A touch, or a checkout back and forth, is no change: same bytes under the same name. */
function isSameToCallers (a: IndexedSkill, b: IndexedSkill): boolean {
  return a.digest === b.digest && a.metadata.path === b.metadata.path && a.refused?.refusal === b.refused?.refusal &&
    a.findings.length === b.findings.length && a.findings.every(({ code }, index) => code === b.findings[index]?.code)
}

async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}
