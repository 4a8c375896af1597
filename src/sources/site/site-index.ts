import { isValidName } from '../../core/format/fields.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { LeftOut } from '../../layout/layout.ts'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { encodePath } from '../../core/shared/paths.ts'
import { DISCOVERY_SCHEMA_ID } from '../../schemas/well-known.ts'
import { DIGEST } from '../address/address.ts'
import { parseObject } from '../http/body.ts'
import { MAX_ENTRIES, pathProblem } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'

const MAX_SKILLS = 20_000

/** A file of a skill, or an archive of all its files. */
export interface Artifact {
  readonly url: string
  /** Path in the skill; '' for an archive. */
  readonly path: string
  /** `sha256:…`; undefined where the index has none. */
  readonly digest?: string
}

/**
 * Parses an index of version 0.2.0, or 0.1.0 if it has no `$schema`. Bad entries are skipped.
 * @param url of the index
 * @param isWanted whether the operator wants the skill of this name
 * @throws SourceError if it is not an index, or its version is unknown
 */
export function parseIndex (text: string, url: string, isWanted: (name: string) => boolean) {
  const { $schema: schema, skills: listed } = parseObject(text, 'the index of the site')
  if (schema !== undefined && schema !== DISCOVERY_SCHEMA_ID) {
    throw new SourceError('not_found', 'the index of the site has an unknown version')
  }
  if (!Array.isArray(listed)) throw new SourceError('bad_answer', 'the index of the site has no list of skills')
  const leftOut: LeftOut[] = []
  const skills = new Map<string, readonly Artifact[]>()
  const artifacts = schema === undefined ? filesOf : artifactOf
  let files = 0
  for (const entry of listed.slice(0, MAX_SKILLS)) {
    const { name } = isJsonObject(entry) ? entry : {}
    const path = typeof name === 'string' ? name.slice(0, 120) : '?'
    const isGood = typeof name === 'string' && isValidName(name) && isJsonObject(entry)
    const found = isGood ? artifacts(entry, name, url) : undefined
    files += found?.length ?? 0
    if (!isGood || found === undefined) leftOut.push({ path, reason: 'bad_entry' })
    else if (skills.has(name)) leftOut.push({ path, reason: 'shadowed', by: name })
    else if (!isWanted(name)) leftOut.push({ path, reason: 'excluded' })
    else if (files > MAX_ENTRIES) leftOut.push({ path, reason: 'bound_reached' })
    else skills.set(name, found)
  }
  if (listed.length > MAX_SKILLS) leftOut.push({ path: '?', reason: 'bound_reached' })
  return { skills, leftOut }
}

/** Returns undefined if the entry cannot be used. */
function artifactOf ({ type, url: address, digest }: JsonObject, _: string, url: string): Artifact[] | undefined {
  if (type !== 'skill-md' && type !== 'archive') return undefined
  if (typeof digest !== 'string' || !DIGEST.test(digest)) return undefined
  if (typeof address !== 'string' || !URL.canParse(address, url)) return undefined
  const { href, origin } = new URL(address, url)
  if (origin !== new URL(url).origin) return undefined
  return [{ url: href, digest, path: type === 'skill-md' ? 'SKILL.md' : '' }]
}

function filesOf ({ files }: JsonObject, name: string, url: string): Artifact[] | undefined {
  if (!Array.isArray(files) || !files.some((file) => typeof file === 'string' && isMainFile(file))) return undefined
  const paths = files.map((file) => typeof file === 'string' ? file : '')
  if (new Set(paths).size < paths.length || paths.some((path) => pathProblem(path) !== undefined)) return undefined
  return paths.map((path) => ({ path, url: new URL(`${name}/${encodePath(path)}`, url).href }))
}
