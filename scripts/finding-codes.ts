import { FINDINGS } from '../src/core/format/findings.ts'
import { OUTCOMES_BY_CODE, TARGET_GROUPS } from '../src/verdicts/outcomes.ts'
import { OUTCOMES, TARGET_NAMES, TARGETS } from '../src/verdicts/targets.ts'

const CODES = /(?<=<!-- codes -->\n)[^]*(?=<!-- \/codes -->)/
const TARGET_TABLE = /(?<=<!-- targets -->\n)[^]*(?=<!-- \/targets -->)/

/** docs/validate.md with the table of targets, and with a heading for each code, to which reports link. */
export function withFindings (text: string): string {
  return withTargets(withCodes(text))
}

function withCodes (text: string): string {
  const sections = Object.entries(FINDINGS).map(([code, [severity, summary]]) =>
    `\n### \`${code}\`\n\n${severity}: ${summary}.${outcomesOf(code)}\n`)
  return text.replace(CODES, () => `${sections.join('')}\n`)
}

function withTargets (text: string): string {
  const rows = TARGET_NAMES.map((name) => {
    const { title, source, read } = TARGETS[name]
    return `| \`${name}\` | ${title} | ${source} | ${read} |\n`
  })
  const groups = Object.entries(TARGET_GROUPS).map(([group, names]) => `\nAll ${group}: \`${names.join('`, `')}\`.\n`)
  const head = '| Target | What it is | Read in | On |\n|---|---|---|---|\n'
  return text.replace(TARGET_TABLE, () => `${head}${rows.join('')}${groups.join('')}`)
}

function outcomesOf (code: string): string {
  const possible = OUTCOMES_BY_CODE.get(code) ?? []
  const outcomes = OUTCOMES.toReversed().flatMap((outcome) => {
    const targets = possible.filter((each) => each.outcome === outcome)
      .map(({ target, when }) => `\`${target}\`${when === undefined ? '' : ' (at times)'}`)
    return targets.length === 0 ? [] : [`${outcome}: ${grouped([...new Set(targets)]).join(', ')}`]
  })
  return outcomes.length === 0 ? '' : `\n\n${outcomes.join('; ')}.`
}

/** The names, with a group in place of all of its targets. */
function grouped (targets: readonly string[]): string[] {
  let rest = [...targets]
  const groups = Object.entries(TARGET_GROUPS).flatMap(([group, names]) => {
    const all = names.map((name) => `\`${name}\``)
    if (!all.every((name) => rest.includes(name))) return []
    rest = rest.filter((name) => !all.includes(name))
    return [`all ${group}`]
  })
  return [...groups, ...rest]
}
