import { basename } from 'node:path'
import { documentError, SkillError } from '../errors.ts'
import type { FileContent } from '../files/file-content.ts'
import { toJsonValue } from '../json.ts'
import { MAX_FRONTMATTER_DEPTH } from '../limits.ts'
import type { Manifest } from '../content/manifest.ts'
import type { SkillManager } from '../skill-manager.ts'
import { hasForbiddenSequence } from '../skill-name.ts'
import type { Awaitable } from '../async.ts'
import type { CatalogSkill, Finding, SkillType } from '../skill.ts'

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
}

/**
 * Findings that another door has about a skill, beside those of the catalog. They change nothing about whether it is
 * valid. Must not throw or reject.
 * @param document the main file, undefined when it cannot be read
 */
export type FindingSource = (skill: CatalogSkill, manifest: Manifest, document: FileContent | undefined) => Awaitable<readonly Finding[]>

export interface CatalogEntryOptions {
  readonly skills: Pick<SkillManager, 'find' | 'manifest' | 'readMainFile'>
  readonly moreFindings: readonly FindingSource[]
}

/** How often a skill is looked at anew when it changes meanwhile. */
const MAX_TURNS = 3

/**
 * The entry of one skill, of one state of it.
 * @throws {SkillError} K16's sentences when the name is unsafe or nobody has it
 */
export async function readCatalogEntry (options: CatalogEntryOptions, name: string): Promise<CatalogEntry> {
  if (hasForbiddenSequence(name)) throw documentError.invalidName(name)
  const entry = await findCatalogEntry(options, name)
  if (entry === undefined) throw documentError.skillNotFound(name)
  return entry
}

/** The same, undefined when nobody has the name. */
export async function findCatalogEntry ({ skills, moreFindings }: CatalogEntryOptions, name: string): Promise<CatalogEntry | undefined> {
  for (let turn = 1; ; turn++) {
    const skill = await skills.find(name)
    if (skill === undefined) return undefined
    const manifest = await orNothing(() => skills.manifest(name))
    const document = moreFindings.length === 0 ? undefined : await orNothing(() => skills.readMainFile(name, 'SKILL.md'))
    if (manifest !== undefined && isOneState(skill, manifest, document)) {
      const more = await Promise.all(moreFindings.map((find) => find(skill, manifest, document)))
      return toEntry(skill, manifest, [...skill.findings, ...more.flat()])
    }
    if (manifest === undefined || turn === MAX_TURNS) return toEntry(skill, undefined, skill.findings)
  }
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

/** Whether all three tell of the same main file. */
function isOneState ({ digest, metadata }: CatalogSkill, { files }: Manifest, document: FileContent | undefined): boolean {
  if (digest === undefined) return true
  const mainFile = basename(metadata.path)
  return files.find(({ path }) => path === mainFile)?.digest === digest && (document === undefined || document.digest === digest)
}

/** What cannot be read is no reason to leave a skill out: its findings say what is wrong. */
async function orNothing<T> (read: () => Awaitable<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SkillError) return undefined
    throw error
  }
}
