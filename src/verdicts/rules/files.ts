import { quoteList } from '../../core/format/findings.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import { foldersAbove } from '../../core/shared/paths.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { counted, quote } from '../../core/shared/text.ts'
import { CONDITIONS } from '../conditions.ts'
import { finding, findingOnFiles } from '../findings.ts'
import { bytesOf, type Subject } from '../subject.ts'

const NESTED_MAIN_FILE = /^(.+)\/SKILL\.md$/i

/** Names that Windows reserves for devices, characters that it refuses, and endings that it drops. */
const NOT_ON_WINDOWS =
  /(?:^|\/)(?:(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.[^/]*)?(?=\/|$)|[^/]*[<>:"\\|?*][^/]*|[^/]*[. ](?=\/|$))/i

/** Checks the names and sizes of a skill's files, whatever is in them. */
export function fileFindings (subject: Subject): readonly Finding[] {
  const paths = (subject.files ?? []).map(({ path }) => path)
  const nested = nestedSkills(subject)
  const findings = [
    ...findingOnFiles('file_names_collide', collisions(paths), 'names differ only in case or in how their characters ' +
      'are composed: some disks keep one of them', 'Rename one of each two'),
    ...findingOnFiles('file_name_not_portable', paths.filter((path) => NOT_ON_WINDOWS.test(path)),
      'files have names that Windows cannot write',
      'Rename them without reserved words and characters, and without a space or dot at the end')
  ]
  const [first] = nested
  if (first !== undefined && paths.some(isMainFile)) {
    const sentence = `folders inside the skill are skills themselves: ${quoteList(nested)}`
    const fix = `Move ${quote(first)} out of the skill, or rename its SKILL.md`
    findings.unshift({ ...finding('nested_skills', sentence, fix), file: `${first}/SKILL.md` })
  }
  if (CONDITIONS.too_large_for_anthropic(subject) || CONDITIONS.too_large_for_openai(subject)) {
    const size = `${counted(paths.length, 'file')} and ${counted(bytesOf(subject), 'byte')}`
    findings.push(finding('upload_too_large', `the skill has ${size}, more than uploads accept`,
      'Split the skill, or move large files out of it'))
  }
  return findings
}

/** Returns the folders inside a skill that have a main file of their own. */
export function nestedSkills ({ files = [] }: Subject): readonly string[] {
  return files.flatMap(({ path }) => NESTED_MAIN_FILE.exec(path)?.[1] ?? [])
}

/** Returns the second of each two, and the third. Folders collide as files do; main files have their own finding. */
function collisions (paths: readonly string[]): readonly string[] {
  const originals = new Map<string, string>()
  const colliding = new Set<string>()
  for (const path of paths.flatMap((path) => [...foldersAbove(path), path])) {
    const key = path.normalize('NFC').toLowerCase()
    const original = originals.get(key) ?? path
    originals.set(key, original)
    if (original !== path && !isMainFile(path)) colliding.add(path)
  }
  return [...colliding]
}
