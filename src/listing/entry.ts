import { finding } from '../core/format/findings.ts'
import type { FileContent } from '../core/read/file-content.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { SKILL_LIMITS, SkillError, type SkillLimit, SkillTooLargeError } from '../core/shared/errors.ts'
import type { CatalogSkill, Finding, Manifest, SkillType } from '../core/shared/skill.ts'

/** A skill in the catalog. `null` where its files cannot be listed. */
export interface CatalogEntry {
  readonly name: string
  readonly description: string
  readonly type: SkillType
  /** Plain JSON data; `{}` if there is no frontmatter or it cannot be read. */
  readonly frontmatter: unknown
  readonly revision: string | null
  readonly size_bytes: number | null
  readonly file_count: number | null
  readonly valid: boolean
  readonly findings: readonly Finding[]
}

/** One state of a skill, as input for validation. */
export interface EntryState {
  readonly skill: CatalogSkill
  /** Undefined where the files cannot be listed. */
  readonly manifest: Manifest | undefined
  readonly mainFile: FileContent | undefined
  /** Findings about the files, or the one that explains a missing manifest. */
  readonly fileFindings: readonly Finding[]
  /** Undefined where the files cannot be read. */
  readonly state?: SkillState
}

/** Adds findings, and maybe other members, to an entry. Must not throw or reject. */
export type EntryValidator<Validated extends ValidatedEntry> = (state: EntryState) => Promise<Validated>

export type ValidatedEntry = Pick<CatalogEntry, 'findings'>

/**
 * Makes the catalog entry of a skill in one state.
 * @param isListed whether the entry is for a list, which waits for no single skill: its `revision` may be null then
 */
export async function describeState<Validated extends ValidatedEntry> (
  state: SkillState, validate: EntryValidator<Validated>, isListed = false
): Promise<CatalogEntry & Validated> {
  const snapshot = await (isListed ? state.listedSnapshot() : state.snapshot()).catch(asUnreadable)
  const mainFile = await state.mainFile().catch(asUnreadable)
  const read = { skill: state.skill, mainFile: mainFile instanceof SkillError ? undefined : mainFile }
  if (snapshot !== undefined && !(snapshot instanceof SkillError)) {
    return await makeEntry({ ...read, manifest: snapshot.manifest, fileFindings: snapshot.findings, state }, validate)
  }
  const isTooLarge = snapshot instanceof SkillTooLargeError
  const fileFindings = snapshot === undefined ? [PENDING] : isTooLarge ? [tooLarge(snapshot.exceededLimit)] : []
  return await makeEntry({ ...read, manifest: undefined, fileFindings }, validate)
}

/** By the result of the validation, which is the same object while nothing changes. */
const entries = new WeakMap<ValidatedEntry, { readonly skill: CatalogSkill, readonly entry: CatalogEntry }>()

export async function makeEntry<Validated extends ValidatedEntry> (
  state: EntryState, validate: EntryValidator<Validated>
): Promise<CatalogEntry & Validated> {
  const { skill, manifest } = state
  const { name, metadata, frontmatter, valid } = skill
  const validated = await validate(state)
  const known = entries.get(validated)
  if (known?.skill === skill) return known.entry as CatalogEntry & Validated
  const entry = {
    name,
    description: metadata.description,
    type: metadata.type,
    frontmatter,
    revision: manifest?.revision ?? null,
    size_bytes: manifest?.files.reduce((sum, file) => sum + file.size_bytes, 0) ?? null,
    file_count: manifest?.files.length ?? null,
    valid,
    ...validated
  }
  entries.set(validated, { skill, entry })
  return entry
}

/** Returns errors for which the skill has an entry with findings instead of files. */
function asUnreadable (error: unknown): SkillError {
  if (error instanceof SkillError && error.code !== 'skill_changing' && error.code !== 'skill_not_found') return error
  throw error
}

function tooLarge (limit: SkillLimit): Finding {
  return finding(limit, `the skill has no revision and no manifest because it has ${SKILL_LIMITS[limit]}`,
    'Move what agents do not need out of the skill folder')
}

/** For a skill that is written without pause: its entry has what the index knows. */
export const PENDING: Finding = finding('revision_pending',
  'the skill has no revision yet: its files are being read, or are written without pause',
  'Ask for the skill by its name, or ask again')
