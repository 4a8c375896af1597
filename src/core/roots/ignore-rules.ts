import type { PathFilter } from '../read/hidden.ts'
import {
  IGNORE_FILE, type IgnoreRules, MAX_IGNORE_FILE_BYTES, parseIgnoreFile, unreadableIgnoreFile
} from '../read/ignore-file.ts'
import type { Disk } from '../read/disk.ts'
import { openInside } from '../read/open-inside.ts'
import { asRefused, isUnknown, type Refusal } from '../read/refused.ts'
import { signatureAt } from '../read/signature.ts'
import { finding } from '../format/findings.ts'
import { sha256 } from '../shared/digest.ts'
import type { Finding, Signature } from '../shared/skill.ts'
import { isMainFile } from '../format/main-files.ts'

/** An ignore file as it was read. */
export interface IgnoreFile {
  readonly rules: IgnoreRules
  /** Of what is at its path, links followed; undefined for nothing that can be asked. */
  readonly signature: Signature | undefined
}

/** What a skill does not serve, by its own ignore file and by that of its root. */
export interface SkillFilter extends PathFilter {
  readonly findings: readonly Finding[]
}

/**
 * Reads the ignore file of a skill or a root; undefined when it went away.
 * @param folder real path
 * @throws {RefusedError} `changed`, `io_error`
 */
export async function readIgnoreFile (disk: Disk, folder: string): Promise<IgnoreFile | undefined> {
  const path = `${folder}/${IGNORE_FILE}`
  // Before the bytes: a change in between shows as a difference at the next comparison.
  const signature = await signatureAt(disk, path)
  try {
    const file = await openInside({ disk, folder, path: IGNORE_FILE }, MAX_IGNORE_FILE_BYTES)
    try {
      return { rules: parseIgnoreFile(await file.readAll()), signature }
    } finally {
      await file.close()
    }
  } catch (error) {
    const refused = asRefused(error)
    if (isUnknown(refused) || refused.refusal === 'changed') throw refused
    if (refused.refusal === 'not_found' && await disk.lstat(path) === undefined) return undefined
    const problem = PROBLEMS[refused.refusal] ?? 'is not a regular file of its folder'
    return { rules: unreadableIgnoreFile(problem), signature }
  }
}

const PROBLEMS: Readonly<Partial<Record<Refusal, string>>> = {
  too_large: `has more than ${MAX_IGNORE_FILE_BYTES} bytes`,
  permission_denied: 'may not be read by the server'
}

/**
 * The filter of a skill; undefined when no ignore file says anything. A skill cannot take back what its root hides.
 * While a file cannot be used, only the main file is served, since what it would hide is not known.
 */
export function createSkillFilter (
  name: string, rootRules: IgnoreRules | undefined, own: IgnoreRules | undefined
): SkillFilter | undefined {
  if (rootRules === undefined && own === undefined) return undefined
  const findings = [
    ...rootRules !== undefined && 'problem' in rootRules
      ? [unusable(`the ${IGNORE_FILE} of the skills folder ${rootRules.problem}`)]
      : [],
    ...own !== undefined && 'problem' in own ? [unusable(`${IGNORE_FILE} ${own.problem}`)] : []
  ]
  const hides = (path: string, isFolder: boolean): boolean => isIgnored(rootRules, `${name}/${path}`, isFolder) ||
    isIgnored(own, path, isFolder)
  return {
    id: sha256(`${rootRules?.id ?? ''}\n${own?.id ?? ''}`),
    findings,
    hides: findings.length === 0 ? hides : (path, isFolder) => !isMainFile(path) || hides(path, isFolder)
  }
}

export function isIgnored (rules: IgnoreRules | undefined, path: string, isFolder: boolean): boolean {
  return rules !== undefined && 'filter' in rules && rules.filter.hides(path, isFolder)
}

function unusable (message: string): Finding {
  return finding('ignore_file_unusable',
    `${message}, so that only the main file is served`,
    'Write it in UTF-8, with few and simple patterns, as docs/configuration.md says')
}
