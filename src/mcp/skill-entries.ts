import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { SkillError } from '../core/errors.ts'
import { MCP_PAGE_ENTRIES, MCP_PAGE_FILES } from './limits.ts'
import type { SkillSource } from '../core/skill-source.ts'
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

/** An entry, or why there is none. */
type EntryOrFindings =
  | { readonly kind: 'entry', readonly entry: SkillEntry }
  | { readonly kind: 'unlisted', readonly findings: readonly Finding[] }

/** One page of the skills that every client accepts. What is wrong with another one never takes these away. */
export async function listSkillEntries (skills: SkillSource, cursor: string | undefined): Promise<Page<SkillEntry>> {
  let files = 0
  return await readPage(await skills.list(), cursor, async (name) => {
    const entry = await listedEntry(skills, name)
    files += entry?.resources.length ?? 0
    return entry
  }, (entries) => entries.length >= MCP_PAGE_ENTRIES || files >= MCP_PAGE_FILES)
}

/** @throws {ProtocolError} -32602 that says why there is no entry */
export async function getSkillEntry (skills: SkillSource, uri: string): Promise<SkillEntry> {
  const place = parseSkillUri(uri)
  if (place?.path !== 'SKILL.md') throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'A skill is named by the URI of its SKILL.md: skill://<name>/SKILL.md')
  const found = await entryOrFindings(skills, place.name)
  switch (found.kind) {
    case 'entry': return found.entry
    case 'unlisted': {
      const reasons = found.findings.filter(({ severity }) => severity !== 'info').map(({ message }) => message).join('; ')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No skill is served at ${mainFileUri(place.name)}. ${reasons}`)
    }
  }
}

/** A skill that goes away or cannot be read while a page is made is not on it. */
async function listedEntry (skills: SkillSource, name: string): Promise<SkillEntry | undefined> {
  try {
    // The index alone says so of most skills that are not listed.
    if ((await skills.find(name))?.valid !== true) return undefined
    const found = await entryOrFindings(skills, name)
    return found.kind === 'entry' ? found.entry : undefined
  } catch (error) {
    if (error instanceof SkillError) return undefined
    throw error
  }
}

async function entryOrFindings (skills: SkillSource, name: string): Promise<EntryOrFindings> {
  return await skills.read(name, async (state) => {
    const document = await state.mainFile()
    const manifest = await state.manifest()
    const { frontmatter, findings } = await checkEligibility(state.skill, manifest, document)
    if (frontmatter === undefined) return { kind: 'unlisted', findings }
    const resources = manifest.files.map(({ path, digest, size_bytes: size }) => ({ uri: skillUri(name, path), digest, size }))
    return { kind: 'entry', entry: { uri: mainFileUri(name), frontmatter, resources } }
  })
}
