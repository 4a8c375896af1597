import type { Finding, FindingSeverity } from '../../core/shared/skill.ts'
import { counted, grouped, printable } from '../../core/shared/text.ts'
import { listedTokens, roundTokens, type TokenEstimate } from '../../verdicts/tokens.ts'
import { fileOf, helpUrl, type ReporterFactory, type SkillReport, type Totals } from './reporter.ts'

const COLORS: Readonly<Record<FindingSeverity | 'dim', string>> = {
  error: '\u001B[31m', warning: '\u001B[33m', info: '\u001B[36m', dim: '\u001B[2m'
}
const MAX_NAMED_CLIENTS = 3

const PLAIN = '\u001B[0m'

/** Beginnings that CI services take for commands. */
const COMMAND_LIKE = /^(?:::|##)/

/** For people: a line for each finding, its fix below, and the totals last. */
export const textReporter: ReporterFactory = ({ print, targets, hasColor }) => {
  const explained = new Set<string>()
  let listed = 0
  let only: TokenEstimate | undefined
  const paint = (color: keyof typeof COLORS, text: string): string =>
    hasColor ? `${COLORS[color]}${text}${PLAIN}` : text

  function describe (report: SkillReport, found: Finding): string {
    const { severity, code, message, fix, line, column = 1, targets: names = [] } = found
    const position = `${shown(fileOf(report, found))}${line === undefined ? '' : `:${line}:${column}`}`
    const lines = [
      `${position}  ${paint(severity, severity)}  ${code}  ${printable(message)}`, `    fix: ${printable(fix)}`
    ]
    if (names.length > 0) lines.push(paint('dim', `    matters to: ${named(names)}`))
    if (!explained.has(code)) lines.push(paint('dim', `    see: ${helpUrl(code)}`))
    explained.add(code)
    return `${lines.join('\n')}\n`
  }

  return {
    skill (report) {
      const { findings, verdicts, path, skill, tokens } = report
      // Bodies are counted of one skill alone: those of thousands take a second.
      only = listed === 0 ? tokens() : undefined
      listed += listedTokens(skill.metadata)
      const isWorthSaying = findings.length > 0 ||
        (targets !== undefined && verdicts.some(({ verdict }) => verdict !== 'ok'))
      if (!isWorthSaying) return
      const said = targets === undefined
        ? ''
        : `${shown(path)}: ${verdicts.map(({ target, verdict }) => `${target} ${verdict}`).join(', ')}\n`
      print(`${said}${findings.map((found) => describe(report, found)).join('')}\n`)
    },
    end (totals) { print(`${sumUp(totals)}; ${describeTokens(listed, only)}\n`) }
  }
}

/** At most three clients, and how many more there are. */
function named (names: readonly string[]): string {
  const more = names.length - MAX_NAMED_CLIENTS
  return `${names.slice(0, MAX_NAMED_CLIENTS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function sumUp ({ skills, error, warning, info, accepted }: Totals): string {
  const counts = ([['error', error], ['warning', warning], ['info', info]] as const).filter(([, count]) => count > 0)
    .map(([word, count]) => counted(count, word))
  const found = counts.length === 0 ? 'no findings' : counts.join(', ')
  return `${counted(skills, 'skill')}: ${found}${accepted > 0 ? `, ${accepted} accepted by the baseline` : ''}`
}

/** `about 240 tokens in each turn`. */
function describeTokens (listed: number, only: TokenEstimate | undefined): string {
  const about = `about ${grouped(roundTokens(listed))} tokens in each turn`
  if (only === undefined) return about
  const { body, all_files: all } = only
  const inUse = body === null ? '' : `, ${grouped(body)} in use`
  return `${about}${inUse}${all === null ? '' : `, ${grouped(all)} with all files`}`
}

function shown (path: string): string {
  const text = printable(path)
  return COMMAND_LIKE.test(text) ? `./${text}` : text
}
