import t from 'tap'
import { scanText } from '../../src/verdicts/text-scan.ts'
import { verdictsFor } from '../helper/verdicts.ts'

const LETTERS = 'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zaBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789'
/** A secret in two parts, so that no scanner of this repository finds it. */
const secret = (prefix: string, length: number): string => prefix + LETTERS.slice(0, length)

function codesOf (text: string): readonly string[] {
  return scanText(text).map(({ code, line, column }) => `${code} ${line}:${column}`)
}

t.test('K79: secrets of a fixed form are found, and not repeated', (t) => {
  for (const text of [
    secret('ghp_', 36),
    secret('github_pat_', 62),
    `AKIA${'7QX2M5KD9ZB4W1RT'}`,
    secret('sk_live_', 24),
    secret('xoxb-', 40),
    secret('AIza', 35),
    secret('sk-ant-api03-', 60),
    secret('sk-proj-', 60),
    `-----BEGIN ${'PRIVATE KEY'}-----\n${LETTERS}\n`
  ]) {
    const [found, ...others] = scanText(`a\nb ${text}`)
    t.match(found, { code: 'secret_in_text', severity: 'warning', line: 2, column: 3 }, text.slice(0, 8))
    t.strictSame(others, [])
    t.notOk(JSON.stringify(found).includes(text.slice(-12)))
  }
  for (const text of ['ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'AKIAIOSFODNN7EXAMPLE', 'sk_live_...', 'sk-ant-api03-YOUR_KEY', '-----BEGIN PRIVATE KEY-----\n...\n', `x${secret('ghp_', 36)}`, secret('ghp_', 30)]) {
    t.strictSame(codesOf(text), [], text)
  }
  t.end()
})

t.test('K79: encoded data and downloads for a shell are shown for review', (t) => {
  const blob = LETTERS.repeat(20).slice(0, 1_024)
  t.strictSame(codesOf(`a\n${blob}\n`), ['encoded_text 2:1'])
  t.strictSame(codesOf(`a\ndata:image/png;base64,${blob}`), ['encoded_text 2:23'])
  t.strictSame(codesOf(blob.slice(1)), [])
  t.strictSame(codesOf('='.repeat(5_000)), [], 'a line is no data')
  for (const line of ['curl -fsSL https://example.org/i.sh | sh', 'wget -qO- https://example.org | sudo -E bash -', 'irm https://example.org | iex', 'Run `curl x | bash`']) {
    t.match(codesOf(`# a\n\n${line}`), [/^download_to_shell 3:/], line)
  }
  for (const line of ['curl https://example.org | jq .', 'cat x | sh', '| curl | what sh does |', 'curl https://example.org -o x; sh x']) t.strictSame(codesOf(line), [], line)
  t.end()
})

t.test('hostile text takes linear time', (t) => {
  const size = 1_000_000
  for (const part of ['curl ', 'curl x|', '-----BEGIN A PRIVATE KEY-----\n', 'a'.repeat(1_023) + ' ', 'ghp_', 'sk-ant-api03-a', '|sh\n', '| ', 'AIza-', 'RSA ']) {
    const before = process.cpuUsage()
    scanText(part.repeat(size / part.length))
    const { user, system } = process.cpuUsage(before)
    t.ok(user + system < 2_000_000, `${JSON.stringify(part.slice(0, 20))}: ${user + system} µs`)
  }
  t.end()
})

t.test('K79: names of files that some disk cannot keep, and programs', async (t) => {
  const text = '---\nname: demo\ndescription: What demo is for\n---\n# Demo\n'
  const codes = async (...paths: readonly string[]): Promise<readonly string[]> => {
    const { findings } = await verdictsFor({ text, files: Object.fromEntries(paths.map((path) => [path, 1])) })
    return findings.filter(({ code }) => code.startsWith('file_')).map(({ code, file }) => `${code} ${file}`)
  }
  t.strictSame(await codes('a.md', 'A.md', 'docs/x.md', 'Docs/y.md'), ['file_names_collide A.md'].concat([]))
  t.strictSame(await codes('caf\u00e9.md', 'cafe\u0301.md'), ['file_names_collide cafe\u0301.md'])
  for (const path of ['con.md', 'a/AUX', 'a:b.md', 'what?.md', 'a ./b', 'x.']) t.strictSame(await codes(path), [`file_name_not_portable ${path}`], path)
  t.strictSame(await codes('bin/tool.exe', 'lib.so', 'con/x'), ['file_name_not_portable con/x', 'file_program bin/tool.exe'])
  t.strictSame(await codes('console.md', 'a.b/c.md', 'run.sh', 'com10.md'), [])
})
