/** The main file that is preferred if a folder has several: `SKILL.MD` for get_skill, `SKILL.md` for all other APIs. */
export type MainFilePreference = 'SKILL.MD' | 'SKILL.md'

/** Whether a name is that of a main file, in any casing of ASCII letters. */
export function isMainFile (name: string): boolean {
  return /^skill\.md$/i.test(name)
}

export function mainFileAmong (names: readonly string[]): string | undefined {
  return orderMainFiles(names.filter(isMainFile), 'SKILL.md')[0]
}

/** Sorts names: the preferred spelling, the other usual one, then the rest. */
export function orderMainFiles (names: readonly string[], preferred: MainFilePreference): readonly string[] {
  const usual = preferred === 'SKILL.md' ? ['SKILL.md', 'SKILL.MD'] : ['SKILL.MD', 'SKILL.md']
  return [...usual.filter((name) => names.includes(name)), ...names.filter((name) => !usual.includes(name)).toSorted()]
}
