import { readFileSync } from 'node:fs'
import t from 'tap'
import { withCodes, withTargets } from '../../../scripts/finding-codes.ts'
import { finding, FINDINGS, quoteList } from '../../../src/core/format/findings.ts'

t.test('a finding has the severity of its code, and a field only when it is about one', async t => {
  t.strictSame(finding('name_missing', 'a sentence', 'An instruction'),
    { code: 'name_missing', severity: 'error', message: 'a sentence', fix: 'An instruction' })
  t.strictSame(finding('unknown_fields', 'a sentence', 'An instruction', 'name'),
    { code: 'unknown_fields', severity: 'info', message: 'a sentence', fix: 'An instruction', field: 'name' })
})

t.test('the documents list every kind of finding, and no other', async t => {
  const documented = readFileSync(new URL('../../../docs/findings.md', import.meta.url), 'utf8').match(/^\| `\w+` \| (?:error|warning|info) \| .* \|$/gm)
  t.strictSame(documented, Object.entries(FINDINGS).map(([code, [severity, summary]]) => `| \`${code}\` | ${severity} | ${summary} |`))
})

t.test('K79: each code has a heading that reports link to (if not: npm run tables)', async t => {
  const text = readFileSync(new URL('../../../docs/findings.md', import.meta.url), 'utf8')
  t.equal(text, withCodes(text))
  for (const code of Object.keys(FINDINGS)) t.ok(text.includes(`\n### \`${code}\`\n`), code)
  const targets = readFileSync(new URL('../../../docs/validate.md', import.meta.url), 'utf8')
  t.equal(targets, withTargets(targets))
})

t.test('a list of names says how many it leaves out', async t => {
  t.equal(quoteList(['a']), "'a'")
  t.equal(quoteList(['a', 'b', 'c']), "'a', 'b', 'c'")
  t.equal(quoteList(['a', 'b', 'c', 'd', 'e']), "'a', 'b', 'c' and 2 more")
})
