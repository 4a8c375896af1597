import { type FindingCode, FINDINGS } from '../src/validate/report.ts'
import {
  OUTCOMES, outcomesOf, type Target, TARGET_GROUPS, TARGET_NAMES, type TargetName, TARGETS
} from '../src/verdicts/targets.ts'
import { type Example, FINDING_EXAMPLES, GOOD } from '../test/helper/finding-examples.ts'

const CODES = /(?<=<!-- codes -->\n)[^]*(?=<!-- \/codes -->)/
const TARGET_LIST = /(?<=<!-- targets -->\n)[^]*(?=<!-- \/targets -->)/

/** Outcomes longer than this are written once, at the first code that has them. */
const MAX_REPEATED_LENGTH = 60
/** A character that repeats more often is shown once, with its count. */
const LONG_RUN = /([^])\1{19,}/gu
const UNPRINTABLE = /[^\P{C}\n]/gu

/** Returns docs/findings.md with a heading for each code: reports link to these headings. */
export function withFindings (text: string): string {
  const firstWith = new Map<string, string>()
  const sections = Object.entries(FINDINGS).map(([code, [severity, summary]]) => {
    const outcomes = targetsOf(code)
    const first = firstWith.get(outcomes)
    if (first === undefined) firstWith.set(outcomes, code)
    const isLong = outcomes.length > MAX_REPEATED_LENGTH
    const outcome = first !== undefined && isLong ? `\n\nTargets as of [\`${first}\`](#${first}).` : outcomes
    return `\n### \`${code}\`\n\n${severity}: ${summary}.${outcome}${examplesOf(code)}\n`
  })
  return text.replace(CODES, () => `${sections.join('')}\n`)
}

/** Returns docs/validate.md with the table of targets. */
export function withTargets (text: string): string {
  const rows = TARGET_NAMES.map((name) => {
    const { source, read, group = '' } = clientOf(name)
    return `| \`${name}\` | ${group === '' ? '' : `\`${group}\``} | ${source}; ${read} |\n`
  })
  return text.replace(TARGET_LIST, () => `\n| Target | Group | Rules from |\n|---|---|---|\n${rows.join('')}\n`)
}

function clientOf (name: TargetName): Target {
  return TARGETS[name]
}

function targetsOf (code: string): string {
  // What these say is already what the target does.
  if (/^(?:mcp|discovery)_/.test(code)) return ''
  const possible = outcomesOf(code)
  const outcomes = OUTCOMES.toReversed().flatMap((outcome) => {
    const targets = possible.filter((each) => each.outcome === outcome)
      .map(({ target, when }) => `\`${target}\`${when === undefined ? '' : '*'}`)
    return targets.length === 0 ? [] : [`${outcome}: ${grouped([...new Set(targets)]).join(', ')}`]
  })
  return outcomes.length === 0 ? '' : `\n\n${outcomes.join('; ')}.`
}

/** Returns names of targets, with the name of a group instead of all its targets. */
function grouped (targets: readonly string[]): string[] {
  if (TARGET_NAMES.every((name) => targets.includes(`\`${name}\``))) return ['everybody']
  let rest = [...targets]
  const groups = Object.entries(TARGET_GROUPS).flatMap(([group, names]) => {
    const all = names.map((name) => `\`${name}\``)
    if (!all.every((name) => rest.includes(name))) return []
    rest = rest.filter((name) => !all.includes(name))
    return [`all ${group}`]
  })
  return [...groups, ...rest]
}

function examplesOf (code: string): string {
  const example = FINDING_EXAMPLES[code as FindingCode]
  if (example === undefined) return ''
  const right = example.right === GOOD ? '' : ` → ${shown(example, 'right')}`
  return `\n\n${shown(example, 'wrong')}${right}`
}

/** Returns a text as code, with `⏎` for the end of a line, or the names of files. */
function shown ({ place, ...sides }: Example, side: 'wrong' | 'right'): string {
  const texts = place === 'files' ? sides[side] : [sides[side].join('\n')]
  return texts.map((text) => `\`${printable(text)}\``).join(', ')
}

function printable (text: string): string {
  return text
    .replace(LONG_RUN, (run, character: string) => `${character}${character}…(${run.length})`)
    .replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`)
    .replaceAll('\n', '⏎') || '⏎'
}
