import { FINDINGS } from '../src/core/format/findings.ts'
import { OUTCOMES_BY_CODE } from '../src/verdicts/outcomes.ts'
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
  const rows = TARGET_NAMES.map((name) => `| \`${name}\` | ${TARGETS[name].title} | ${TARGETS[name].source} | ${TARGETS[name].read} |\n`)
  return text.replace(TARGET_TABLE, () => `| Target | What it is | Read in | On |\n|---|---|---|---|\n${rows.join('')}`)
}

function outcomesOf (code: string): string {
  const possible = OUTCOMES_BY_CODE.get(code) ?? []
  const lines = OUTCOMES.toReversed().flatMap((outcome) => {
    const targets = possible.filter((each) => each.outcome === outcome).map(({ target, when }) => `\`${target}\`${when === undefined ? '' : ' (at times)'}`)
    return targets.length === 0 ? [] : [`\`${outcome}\`: ${[...new Set(targets)].join(', ')}`]
  })
  return lines.length === 0 ? '' : `\n\n${lines.join('\n\n')}`
}
