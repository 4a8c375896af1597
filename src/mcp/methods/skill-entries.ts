import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { SkillState } from '../../core/revisions/state.ts'
import type { TrustReport } from '../../schemas/trust.ts'
import { isUsable } from '../../core/format/findings.ts'
import { unlessRefused } from '../../core/shared/errors.ts'
import type { Finding, Frontmatter } from '../../core/shared/skill.ts'
import type { View } from '../../core/view.ts'
import { toWellFormed } from '../../core/shared/json.ts'
import { checkEligibility } from '../../verdicts/rules/mcp-list.ts'
import { MCP_PAGE_ENTRIES, MCP_PAGE_FILES } from '../limits.ts'
import { type Page, readPage } from './paging.ts'
import { mainFileUri, parseSkillUri, skillUri } from '../skill-uri.ts'

/** Our keys in `_meta`, with a prefix of our own. */
const REVISION = 'skillserve/revision'
export const TRUST = 'skillserve/trust'

/** Returns the trust report of a skill in one state. */
export type OriginOf = (state: SkillState) => Promise<{ readonly report: TrustReport }>

/** An entry of `skills/list` (Skills extension, "The skill entry"). */
interface SkillEntry {
  readonly uri: string
  readonly frontmatter: Frontmatter
  readonly resources: ReadonlyArray<{ readonly uri: string, readonly digest: string, readonly size: number }>
  readonly _meta: {
    /** Revision of the skill; the HTTP routes serve its files and archive under this revision. */
    readonly [REVISION]: string
    /** Trust report of the skill; absent without a trust policy. */
    readonly [TRUST]?: TrustReport
  }
}

/** Lists one page of the skills that the official client accepts. */
export async function listSkillEntries (
  skills: View, cursor: string | undefined, originOf?: OriginOf
): Promise<Page<SkillEntry>> {
  let files = 0
  return await readPage(skills.scope, await skills.list(), cursor, async (name) => {
    const entry = await findListed(skills, name, originOf)
    files += entry?.resources.length ?? 0
    return entry
  }, (entries) => entries.length >= MCP_PAGE_ENTRIES || files >= MCP_PAGE_FILES)
}

/**
 * Returns the entry of one skill by the URI of its SKILL.md.
 * @throws {ProtocolError} -32602 with the reason why there is no entry
 * @throws {SkillError} if the skill cannot be read
 */
export async function getSkillEntry (skills: View, uri: string, originOf?: OriginOf): Promise<SkillEntry> {
  const parts = parseSkillUri(uri)
  if (parts?.path !== 'SKILL.md') {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams,
      'A skill is named by the URI of its SKILL.md: skill://<name>/SKILL.md')
  }
  const { entry, findings } = await skills.read(parts.name, (state) => readEntry(state, originOf))
  if (entry !== undefined) return entry
  const reasons = findings.filter(({ code }) => code !== 'mcp_limits_exceeded').map(({ message }) => message).join('; ')
  const sentence = `No skill is served at ${mainFileUri(parts.name)}. ${reasons}`
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, sentence)
}

/** Returns the entry of a skill in a list; undefined if the skill is gone, cannot be read, or is not eligible. */
async function findListed (
  skills: View, name: string, originOf: OriginOf | undefined
): Promise<SkillEntry | undefined> {
  return await unlessRefused(() => skills.read(name, async (state) => {
    // The index tells which skills cannot be offered, so that their manifests need not be read.
    const snapshot = isUsable(state.skill) ? await state.listedSnapshot() : undefined
    return snapshot && (await readEntry(state, originOf)).entry
  }))
}

async function readEntry (
  state: SkillState, originOf: OriginOf | undefined
): Promise<{ readonly entry?: SkillEntry, readonly findings: readonly Finding[] }> {
  const manifest = await state.manifest()
  const { frontmatter, findings } = await checkEligibility(state.skill, manifest, await state.mainFile())
  if (frontmatter === undefined) return { findings }
  const { name } = state.skill
  const verdict = await originOf?.(state)
  const resources = manifest.files.map(({ path, digest, size_bytes: size }) =>
    ({ uri: skillUri(name, path), digest, size }))
  const meta = { [REVISION]: manifest.revision, ...verdict && { [TRUST]: verdict.report } }
  return {
    entry: {
      uri: mainFileUri(name), frontmatter: toWellFormed(frontmatter) as Frontmatter, resources, _meta: meta
    },
    findings
  }
}
