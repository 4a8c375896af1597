import { type Awaitable, orElse } from '../ground/async.ts'
import type { SkillState } from '../content/skill-state.ts'
import { SkillError, type SkillExcess, SkillTooLargeError } from '../ground/errors.ts'
import type { FileContent } from '../files/file-content.ts'
import { finding } from '../format/findings.ts'
import { toJsonValue } from '../ground/json.ts'
import { MAX_FRONTMATTER_DEPTH, MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../ground/limits.ts'
import type { Manifest } from '../content/manifest.ts'
import type { TrustReport } from '../content/trust/trust-policy.ts'
import type { SkillSource } from '../skill-source.ts'
import type { CatalogSkill, Finding, SkillType } from '../ground/skill.ts'

/** What the catalog tells of a skill. `null` where its files cannot be listed. */
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
  /** Where the skill comes from; absent without a trust policy. */
  readonly trust?: TrustReport
}

/**
 * Findings that another door has about a skill, beside those of the catalog. They change nothing about whether it is
 * valid. Must not throw or reject.
 * @param document the main file, undefined when it cannot be read
 */
export type FindingSource = (skill: CatalogSkill, manifest: Manifest, document: FileContent | undefined) => Awaitable<readonly Finding[]>

export interface CatalogEntryOptions {
  readonly skills: Pick<SkillSource, 'find' | 'read' | 'readListed'>
  readonly moreFindings: readonly FindingSource[]
}

/**
 * The entry of one skill, of one state of it.
 * @throws {SkillError} `get_skill`'s sentences when the name is unsafe or nobody has it
 */
export async function readCatalogEntry ({ skills, moreFindings }: CatalogEntryOptions, name: string): Promise<CatalogEntry> {
  return await skills.read(name, (state) => describeState(state, moreFindings))
}

/** The same for a page of the catalog, which waits for no skill that takes long; undefined when nobody has the name. */
export async function findCatalogEntry (options: CatalogEntryOptions, name: string): Promise<CatalogEntry | undefined> {
  try {
    return await options.skills.readListed(name, (state) => describeState(state, options.moreFindings))
  } catch (error) {
    if (!(error instanceof SkillError)) throw error
    // A skill of which no state is known is in the listing by what the index knows: it keeps nobody else's entry back.
    const skill = error.code === 'skill_changing' ? await options.skills.find(name) : undefined
    if (skill !== undefined) return toEntry(skill, undefined, [...skill.findings, PENDING])
    if (error.code === 'skill_not_found' || error.code === 'skill_changing') return undefined
    throw error
  }
}

/** The entry of a skill in a state, for an answer that reads more of that state. */
export async function describeState (state: SkillState, moreFindings: readonly FindingSource[]): Promise<CatalogEntry> {
  const { skill } = state
  const manifest = await orElse<Manifest | SkillTooLargeError | undefined>(() => state.manifest(), excessOrNothing)
  if (manifest === undefined) return toEntry(skill, undefined, skill.findings)
  if ('excess' in manifest) return toEntry(skill, undefined, [...skill.findings, TOO_LARGE[manifest.excess]])
  const document = moreFindings.length === 0 ? undefined : await orElse<FileContent | undefined>(() => state.mainFile(), nothing)
  const more = await Promise.all(moreFindings.map((find) => find(skill, manifest, document)))
  const verdict = await state.trust()
  const entry = toEntry(skill, manifest, [...skill.findings, ...await state.fileFindings(), ...verdict?.findings ?? [], ...more.flat()])
  return verdict === undefined ? entry : { ...entry, trust: verdict.report }
}

function toEntry ({ name, metadata, frontmatter, valid }: CatalogSkill, manifest: Manifest | undefined, findings: readonly Finding[]): CatalogEntry {
  return {
    name,
    description: metadata.description,
    type: metadata.type,
    frontmatter: toJsonValue(frontmatter, MAX_FRONTMATTER_DEPTH),
    revision: manifest?.revision ?? null,
    size_bytes: manifest?.files.reduce((sum, file) => sum + file.size_bytes, 0) ?? null,
    file_count: manifest?.files.length ?? null,
    valid,
    findings
  }
}

/** What cannot be read is no reason to leave a skill out: its findings say what is wrong. */
function nothing (error: unknown): undefined {
  if (error instanceof SkillError && error.code !== 'skill_changing' && error.code !== 'skill_not_found') return undefined
  throw error
}

function excessOrNothing (error: unknown): SkillTooLargeError | undefined {
  return error instanceof SkillTooLargeError ? error : nothing(error)
}

const TOO_LARGE: Readonly<Record<SkillExcess, Finding>> = {
  too_many_files: finding('too_many_files', `the skill has no revision and no manifest because it has more than ${MAX_SKILL_ENTRIES} files and folders`, 'Move what agents do not need out of the skill folder'),
  too_many_bytes: finding('too_many_bytes', `the skill has no revision and no manifest because its files have more than ${MAX_SKILL_BYTES} bytes`, 'Move large files out of the skill folder')
}

const PENDING: Finding = finding('revision_pending', 'the skill has no revision yet: its files are being read, or are written without pause', 'Ask for the skill by its name, or ask again')
