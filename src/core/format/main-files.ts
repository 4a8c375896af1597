import type { Dirent } from 'node:fs'

/** Which main file is taken when a folder has several: get_skill's spelling, or everybody else's. */
export type MainFilePreference = 'SKILL.MD' | 'SKILL.md'

const MAIN_FILE = /^skill\.md$/i

/** Whether the name of a file is that of a main file, in any casing. Only ASCII: no locale makes another name equal. */
export function isMainFile (name: string): boolean {
  return MAIN_FILE.test(name)
}

/** The main file of a folder with these entries, as far as its listing shows: a link may lead to a file. */
export function listedMainFile (entries: readonly Dirent[]): string | undefined {
  return mainFileAmong(entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name))
}

/** The main file among these names. */
export function mainFileAmong (names: readonly string[]): string | undefined {
  return orderMainFiles(names.filter((name) => isMainFile(name)), 'SKILL.md')[0]
}

/** The names in the order in which they are tried: the preferred spelling, the other one, then the rest sorted. */
export function orderMainFiles (names: readonly string[], preferred: MainFilePreference): readonly string[] {
  if (names.length < 2) return names
  const other = preferred === 'SKILL.md' ? 'SKILL.MD' : 'SKILL.md'
  const rank = (name: string) => name === preferred ? 0 : name === other ? 1 : 2
  return names.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}
