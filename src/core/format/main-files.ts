/** Which main file is taken when a folder has several: get_skill's spelling, or everybody else's. */
export type MainFilePreference = 'SKILL.MD' | 'SKILL.md'

const MAIN_FILE = /^skill\.md$/i

/** Whether the name of a file is that of a main file, in any casing. Only ASCII: no locale makes another name equal. */
export function isMainFile (name: string): boolean {
  return MAIN_FILE.test(name)
}

/** The names in the order in which they are tried: the preferred spelling, the other one, then the rest sorted. */
export function orderMainFiles (names: readonly string[], preferred: MainFilePreference): readonly string[] {
  if (names.length < 2) return names
  const other = preferred === 'SKILL.md' ? 'SKILL.MD' : 'SKILL.md'
  const rank = (name: string) => name === preferred ? 0 : name === other ? 1 : 2
  return names.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}
