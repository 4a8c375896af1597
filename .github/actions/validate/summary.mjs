// Writes a report of `skillserve validate --format json`, read from standard input, as a table in Markdown.
import { json } from 'node:stream/consumers'

/** A summary of GitHub has at most 1 MiB. */
const MAX_ROWS = 500

const { skills, totals } = await json(process.stdin)
const rows = skills.slice(0, MAX_ROWS).map(({ path, targets, findings }) => {
  const count = (severity) => findings.filter((found) => found.severity === severity).length
  const verdicts = targets.map(({ target, verdict }) => `${target} ${verdict}`).join(', ')
  return `| <code>${escape(path)}</code> | ${count('error')} | ${count('warning')} | ${count('info')} | ${verdicts} |`
})
const more = skills.length > MAX_ROWS ? [`\n${skills.length - MAX_ROWS} more skills have no row.`] : []
const accepted = totals.accepted > 0 ? `, ${totals.accepted} accepted by the baseline` : ''
console.log([
  `### ${totals.skills} skills: ${totals.errors} errors, ${totals.warnings} warnings${accepted}`,
  '',
  '| Skill | Errors | Warnings | Infos | Verdicts |',
  '|---|---|---|---|---|',
  ...rows,
  ...more
].join('\n'))

/** The names of folders are foreign text. */
function escape (text) {
  return text.replace(/[^\p{L}\p{N} ./_-]/gu, (character) => `&#${character.codePointAt(0)};`)
}
