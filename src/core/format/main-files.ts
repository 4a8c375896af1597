/** Which main file is taken when a folder has several: get_skill's spelling, or that of all other APIs. */
export type MainFilePreference = 'SKILL.MD' | 'SKILL.md'

/** Whether the name of a file is that of a main file, in any casing. Only ASCII: no locale makes another name equal. */
export function isMainFile (name: string): boolean {
  return /^skill\.md$/i.test(name)
}

/** The main file among these names. */
export function mainFileAmong (names: readonly string[]): string | undefined {
  return orderMainFiles(names.filter(isMainFile), 'SKILL.md')[0]
}

/** The names in the order in which they are tried: the preferred spelling, the other one, then the rest sorted. */
export function orderMainFiles (names: readonly string[], preferred: MainFilePreference): readonly string[] {
  const usual = preferred === 'SKILL.md' ? ['SKILL.md', 'SKILL.MD'] : ['SKILL.MD', 'SKILL.md']
  return [...usual.filter((name) => names.includes(name)), ...names.filter((name) => !usual.includes(name)).toSorted()]
}
