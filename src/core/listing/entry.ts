import type { SkillState } from '../revisions/state.ts'
import { SkillError, type SkillExcess, SkillTooLargeError } from '../shared/errors.ts'
import type { FileContent } from '../read/file-content.ts'
import { finding } from '../format/findings.ts'
import { MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../shared/limits.ts'
import type { TrustReport } from '../shared/origin.ts'
import type { SkillSource } from '../service.ts'
import type { CatalogSkill, Finding, Manifest, SkillType } from '../shared/skill.ts'

/** What the catalog says of a skill. `null` where its files cannot be listed. */
export interface CatalogEntry {
  /** The folder's name: the address of the skill. */
  readonly name: string
  readonly description: string
  readonly type: SkillType
  /** As plain JSON data; `{}` when there is none or it cannot be read. */
  readonly frontmatter: unknown
  readonly revision: string | null
  readonly size_bytes: number | null
  readonly file_count: number | null
  readonly valid: boolean
  readonly findings: readonly Finding[]
}

/** One state of a skill, to be validated. */
export interface EntryState {
  readonly skill: CatalogSkill
  /** Undefined where the files cannot be listed. */
  readonly manifest: Manifest | undefined
  /** The main file, undefined when it cannot be read. */
  readonly mainFile: FileContent | undefined
  /**
   * Findings about files left out of the manifest, about the bytes of those in it, and about a manifest that is
   * missing.
   */
  readonly fileFindings: readonly Finding[]
  /** Undefined where the files cannot be read. */
  readonly state?: SkillState
}

/** What validation says of a skill. It changes nothing about whether the skill is valid. Must not throw or reject. */
export type Judge<Judged extends JudgedEntry> = (state: EntryState) => Promise<Judged>

/** The members of an entry that validation makes: it may add some. */
export interface JudgedEntry {
  readonly findings: readonly Finding[]
  /** Where the skill comes from; absent without a lock and a trust file. */
  readonly trust?: TrustReport
}

export interface CatalogEntryOptions<Judged extends JudgedEntry = JudgedEntry> {
  readonly skills: Pick<SkillSource, 'find' | 'read'>
  readonly judge: Judge<Judged>
}

/**
 * The entry of one skill, of one state of it.
 * @throws {SkillError} `get_skill`'s sentences when the name is unsafe or nobody has it
 */
export async function readCatalogEntry<Judged extends JudgedEntry> (
  { skills, judge }: CatalogEntryOptions<Judged>, name: string
): Promise<CatalogEntry & Judged> {
  return await skills.read(name, (state) => describeState(state, judge))
}

/**
 * The entry of a skill on a page of the catalog, which does not wait for slow skills; undefined for an unknown name.
 */
export async function findCatalogEntry<Judged extends JudgedEntry> (
  options: CatalogEntryOptions<Judged>, name: string
): Promise<(CatalogEntry & Judged) | undefined> {
  const { judge } = options
  try {
    return await options.skills.read(name, (state) => describeState(state, judge), 'if-room')
  } catch (error) {
    if (!(error instanceof SkillError)) throw error
    // A skill of which no state is known is in the listing by what the index knows: it keeps nobody else's entry back.
    const skill = error.code === 'skill_changing' ? await options.skills.find(name) : undefined
    if (skill !== undefined) {
      return await toEntry({ skill, manifest: undefined, mainFile: undefined, fileFindings: [PENDING] }, judge)
    }
    if (error.code === 'skill_not_found' || error.code === 'skill_changing') return undefined
    throw error
  }
}

/** The entry of a skill in a state, for an answer that reads more of that state. */
export async function describeState<Judged extends JudgedEntry> (
  state: SkillState, judge: Judge<Judged>
): Promise<CatalogEntry & Judged> {
  const { skill } = state
  const manifest = await state.manifest().catch(excessOrNothing)
  const mainFile = await state.mainFile().catch(nothing)
  if (manifest === undefined) return await toEntry({ skill, manifest, mainFile, fileFindings: [] }, judge)
  if ('excess' in manifest) {
    return await toEntry({ skill, manifest: undefined, mainFile, fileFindings: [TOO_LARGE[manifest.excess]] }, judge)
  }
  return await toEntry({ skill, manifest, mainFile, fileFindings: await state.fileFindings(), state }, judge)
}

async function toEntry<Judged extends JudgedEntry> (
  state: EntryState, judge: Judge<Judged>
): Promise<CatalogEntry & Judged> {
  const { skill: { name, metadata, frontmatter, valid }, manifest } = state
  return {
    name,
    description: metadata.description,
    type: metadata.type,
    frontmatter,
    revision: manifest?.revision ?? null,
    size_bytes: manifest?.files.reduce((sum, file) => sum + file.size_bytes, 0) ?? null,
    file_count: manifest?.files.length ?? null,
    valid,
    ...await judge(state)
  }
}

/** What cannot be read does not leave a skill out: its findings say what is wrong. */
function nothing (error: unknown): undefined {
  if (error instanceof SkillError && error.code !== 'skill_changing' && error.code !== 'skill_not_found') {
    return undefined
  }
  throw error
}

function excessOrNothing (error: unknown): SkillTooLargeError | undefined {
  return error instanceof SkillTooLargeError ? error : nothing(error)
}

/** What is said of a skill without manifest. */
export const TOO_LARGE: Readonly<Record<SkillExcess, Finding>> = {
  too_many_files: finding(
    'too_many_files',
    `the skill has no revision and no manifest because it has more than ${MAX_SKILL_ENTRIES} files and folders`,
    'Move what agents do not need out of the skill folder'
  ),
  too_many_bytes: finding('too_many_bytes',
    `the skill has no revision and no manifest because its files have more than ${MAX_SKILL_BYTES} bytes`,
    'Move large files out of the skill folder')
}

const PENDING: Finding = finding('revision_pending',
  'the skill has no revision yet: its files are being read, or are written without pause',
  'Ask for the skill by its name, or ask again')
