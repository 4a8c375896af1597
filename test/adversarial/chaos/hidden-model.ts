/** What no answer may hold (K8), by the words of the contract and not by the code of the service. */

/** Texts of ignore files, and what each of them hides: segments of a path, and whether it is a folder. */
export const IGNORE_TEXTS: Readonly<Record<string, (segments: readonly string[], isFolder: boolean) => boolean>> = {
  '': () => false,
  '# nothing\n': () => false,
  '*.txt\n': (segments) => segments.some((name) => name.endsWith('.txt')),
  'docs/\n': (segments, isFolder) => (isFolder ? segments : segments.slice(0, -1)).includes('docs'),
  'link.md\n/data.bin\n': (segments) => segments.includes('link.md') || segments[0] === 'data.bin',
  'SKILL.md\n': (segments) => segments.includes('SKILL.md'),
  '*\n!SKILL.md\n!.skillignore\n': (segments) => segments.length > 1 || !['SKILL.md', '.skillignore'].includes(segments[0] ?? '')
}

/** Names of files that editors and systems leave behind, and secrets. */
export const JUNK = [
  '.DS_Store', 'notes.txt~', '.notes.txt.swp', '4913', '.env.local', 'node_modules/x/index.js', 'docs/__pycache__/a.pyc', '._notes.txt', '..data/SKILL.md'
] as const

const HIDDEN_FOLDERS = ['.git', '.hg', '.svn', 'node_modules', '__pycache__', '..data']
const HIDDEN_FILES = ['.env', '.env.local', '.DS_Store', 'notes.txt~', '.notes.txt.swp', '4913', '._notes.txt']

/** @param ignore text of the skill's ignore file, as far as it has one */
export function isHiddenInModel (path: string, isFolder: boolean, ignore: string | undefined): boolean {
  const segments = path.split('/').filter((name) => name !== '')
  if (segments.some((name) => HIDDEN_FOLDERS.includes(name))) return true
  if (!isFolder && HIDDEN_FILES.includes(segments.at(-1) ?? '')) return true
  return ignore !== undefined && IGNORE_TEXTS[ignore]?.(segments, isFolder) === true
}
