import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { SkillError } from '../core/errors.ts'
import { MCP_PAGE_ENTRIES, MCP_PAGE_FILES } from './limits.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { Finding, Frontmatter } from '../core/skill.ts'
import { checkEligibility } from './eligibility.ts'
import { type Page, readPage } from './paging.ts'
import { mainFileUri, parseSkillUri, skillUri } from './skill-uri.ts'

/** An entry of `skills/list` (Skills extension, "The skill entry"). */
export interface SkillEntry {
  readonly uri: string
  readonly frontmatter: Frontmatter
  readonly resources: ReadonlyArray<{ readonly uri: string, readonly digest: string, readonly size: number }>
}

type Looked =
  | { readonly kind: 'entry', readonly entry: SkillEntry }
  | { readonly kind: 'unlisted', readonly findings: readonly Finding[] }
  | { readonly kind: 'changing' }

/** How often a skill is looked at anew when it changes between its index, its manifest and its main file. */
const MAX_TURNS = 4

/** One page of the skills that every client accepts. What is wrong with another one never takes these away. */
export async function listSkillEntries (skills: SkillManager, cursor: string | undefined): Promise<Page<SkillEntry>> {
  let files = 0
  return await readPage(await skills.list(), cursor, async (name) => {
    const entry = await listedEntry(skills, name)
    files += entry?.resources.length ?? 0
    return entry
  }, (entries) => entries.length >= MCP_PAGE_ENTRIES || files >= MCP_PAGE_FILES)
}

/** @throws {ProtocolError} -32602 that says why there is no entry */
export async function getSkillEntry (skills: SkillManager, uri: string): Promise<SkillEntry> {
  const place = parseSkillUri(uri)
  if (place?.path !== 'SKILL.md') throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'A skill is named by the URI of its SKILL.md: skill://<name>/SKILL.md')
  const looked = await lookAt(skills, place.name)
  switch (looked.kind) {
    case 'entry': return looked.entry
    case 'unlisted': {
      const reasons = looked.findings.filter(({ severity }) => severity !== 'info').map(({ message }) => message).join('; ')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No skill is served at ${mainFileUri(place.name)}. ${reasons}`)
    }
    case 'changing': throw new ProtocolError(ProtocolErrorCode.InternalError, `Skill '${place.name}' keeps changing; try again`)
  }
}

/** A skill that goes away or cannot be read while a page is made is not on it. */
async function listedEntry (skills: SkillManager, name: string): Promise<SkillEntry | undefined> {
  try {
    // Most of those that are not listed are told by the index alone.
    if ((await skills.find(name))?.valid !== true) return undefined
    const looked = await lookAt(skills, name)
    return looked.kind === 'entry' ? looked.entry : undefined
  } catch (error) {
    if (error instanceof SkillError) return undefined
    throw error
  }
}

/** Index, manifest and main file of one state of the skill: each is fresh, and their digests say that they agree. */
async function lookAt (skills: SkillManager, name: string): Promise<Looked> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const document = await skills.readMainFile(name, 'SKILL.md')
    const manifest = await skills.manifest(name)
    const skill = await skills.find(name)
    const main = manifest.files.find(({ path }) => path === 'SKILL.md')
    if (skill?.digest !== document.digest || (main !== undefined && main.digest !== document.digest)) continue
    const { frontmatter, findings } = await checkEligibility(skill, manifest, document)
    if (frontmatter === undefined) return { kind: 'unlisted', findings }
    const resources = manifest.files.map(({ path, digest, size_bytes: size }) => ({ uri: skillUri(name, path), digest, size }))
    return { kind: 'entry', entry: { uri: mainFileUri(name), frontmatter, resources } }
  }
  return { kind: 'changing' }
}
