import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import matter from 'gray-matter'
import t from 'tap'
import { parse } from 'yaml'
import type { TargetName } from '../../src/verdicts/targets.ts'
import { printable } from '../../src/core/shared/text.ts'
import { verdictsFor } from '../helper/verdicts.ts'

/** Values of which readers of YAML make different things. */
const VALUES = [
  '[a]', '{a: b}', '[a', '{a', '[a] b', '\n  - a', '\n  a: b', '- a', '5', '+5', '-a', '.', '1e3', '1.5e3', '0x1f',
  '017', '0o17', '1_000', '0x_1', '0b11', '-0b1', '1:30', '9:99', '190:20:30', '.inf', '+.inf', '.nan', 'true', 'yes',
  'on', 'Off', 'null', 'NULL', '~', '', '2024-01-02', '2024-1-2', '2024-01-02 10:00', '2024-01-02T10:00:00Z', '""',
  '" "', '"5"', '"\\d"', '"\\x41"', '"\\u00e9"', '"\\e"', '"a\\\n  b"', '"a\n  b"', "'it''s'", "'a", '"a', '"a" b',
  "'a' b", '&x a', '*x', '*x y: z', '*.tsx', '**/*.ts', '[*.a]', '{a: *b}', '\n  - *b', '\n  a: *b', '!text x',
  '!!str 5', '!!int "5"', '!!null x', '!!binary aGk=', '!!set {a, b}', '!!set {a: }', '!!timestamp 2024-01-02',
  '!!omap [a: b]', '|\n  a: b', '|2\n  a', '| # a: b', '>\n  a', '> a: b', 'a\n  b', 'a\n b: c', 'a #b', '#a', 'a: b',
  'a:', ': a', 'Use when: asked', '@a', '`a`', '%a', ', a', '] a', '} a', 'a\tb', '\ta', 'a\t#b', 'a\n\tb', '"a\tb"',
  '"\\ud83d"', '"\\ud83d\\ude00"', '"\\/"', '"\\x00"', '1.5', '.5', '5.', '1.5e+3', '12_000.5', 'True', 'y', 'n', 'N',
  '2024-13-45', '!!bool yes', '!!float 5', '!<tag:a> x', '? a', '<<', '=', 'a\u00a0b', '😀'
]

const FIELDS = 'name: demo\ndescription: D\n'

const file = (...lines: readonly string[]) => `---\n${lines.map((line) => `${line}\n`).join('')}---\n`
const withField = (line: string) => file('name: demo', 'description: D', line)

/** Main files of a skill called demo. */
const FILES: readonly string[] = [
  `--- \n${FIELDS}---\n`, `---\t\n${FIELDS}---\n`, `---\n${FIELDS}--- \n`, `---\n${FIELDS}---`,
  `----\n${FIELDS}----\n`, `\n---\n${FIELDS}---\n`, `---\n${FIELDS}---\n`.replaceAll('\n', '\r\n'),
  file('%YAML 1.1', 'name: demo', 'description: D'), file('name: demo', 'name: demo', 'description: D'),
  withField('license: &x b\ncompatibility: *x'), withField('metadata: &x\n  b: c\n  <<: *x'),
  withField('license: a\nlicense: b'), file('name: demo', '\tdescription: D'), file('name: demo', 'description:\tD'),
  `--- # c\n${FIELDS}---\n`, `# c\n---\n${FIELDS}---\n`, withField('...'),
  `---\r${FIELDS.replaceAll('\n', '\r')}---\r`, `\ufeff---\n${FIELDS}---\n`,
  file('# c', 'name: demo # c', 'description: D'), file('{"name": "demo", "description": "D"}'),
  file('  name: demo', '  description: D'), file('"name": demo', "'description': D"), file('- name: demo'),
  file('demo'),
  file('name: demo'), file('description: D'),
  ...VALUES.flatMap((value) => {
    const written = value === '' || value.startsWith('\n') ? value : ` ${value}`
    return [[`name:${written}`, 'description: D'], ['name: demo', `description:${written}`],
      ['name: demo', 'description: D', `license:${written}`]].map((lines) => `${file(...lines)}# Demo\n`)
  }),
  // Written later than the record of skills-ref.
  ...[
    'a --- b', '"\\U00110000"', 'a\u0085b', 'a\u2028b', 'a\u2029b', 'a\fb', 'a\x7fb', 'a\rb', '0b1_0', '1__0', '-0o7',
    '+.NaN', '1e-3', '2001-12-14t21:59:43.10-05:00', 'YES',
    '"\\_\\N\\L\\P\\0\\a\\v"', '1.2.3', '3d', '2nd of 2024-01-02'
  ].map((value) => file('name: demo', `description: ${value}`)),
  withField('metadata:\n  a: 1\n  a: 2'), withField('on: x'), withField('? license\n: MIT')
]

// The package has no types under this name.
const { load: loadYaml4 } = createRequire(import.meta.url)('js-yaml-4') as {
  readonly load: (source: string) => unknown
}

type Reading = 'taken' | 'changed' | 'not taken'

/** What each client does with a file: its own parser, and what its source does with the result. */
const READERS: Readonly<Partial<Record<TargetName, (file: string) => Reading>>> = {
  // skills CLI 1.7.4, dist/cli.mjs
  'skills-cli': (file) => {
    const [, source] = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\r?\n?/.exec(file) ?? []
    const { name, description } = fieldsBy(() => parse(source ?? '', { logLevel: 'error' })) ?? {}
    return [name, description].every((value) => typeof value === 'string' && value !== '') ? 'taken' : 'not taken'
  },
  // OpenCode, skill/index.ts and config/markdown.ts
  opencode: (file) => {
    const fields = fieldsBy(() => matter(file, {}).data) ?? fieldsBy(() => matter(withBlocks(file), {}).data)
    const { name, description = '' } = fields ?? {}
    return typeof name === 'string' && typeof description === 'string' ? 'taken' : 'not taken'
  },
  // Gemini CLI, skillLoader.ts: without two texts it looks for two lines.
  'gemini-cli': (file) => {
    const [, source] = /^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n([\s\S]*))?/.exec(file) ?? []
    if (source === undefined) return 'not taken'
    const { name, description } = fieldsBy(() => loadYaml4(source)) ?? {}
    if (typeof name === 'string' && typeof description === 'string') {
      return /[:\\/<>*?"|]/.test(name) ? 'changed' : 'taken'
    }
    return /^\s*name:/m.test(source) && /^\s*description:/m.test(source) ? 'changed' : 'not taken'
  }
}

/** OpenCode's second attempt: a one-line value with a colon becomes a block, unless it begins with a quote. */
function withBlocks (file: string): string {
  return file.replace(/^---\r?\n[\s\S]*?\r?\n---/, (head) =>
    head.replace(/^([A-Za-z_]\w*)[^\S\n]*:[^\S\n]*(?!["'])(\S.*:.*|:.*)$/gm, '$1: |-\n  $2'))
}

function fieldsBy (read: () => unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = read()
    return typeof value === 'object' && value !== null ? value as Readonly<Record<string, unknown>> : undefined
  } catch {
    return undefined
  }
}

/**
 * The four clients that are not written in JavaScript: as they are here, and else as they were recorded; `?` where
 * nobody has run them.
 */
function otherReadings (): Readonly<Partial<Record<TargetName, string>>> {
  const recording = new URL('../fixtures/yaml-readers.json', import.meta.url)
  const script = fileURLToPath(new URL('../fixtures/yaml-readers.py', import.meta.url))
  const recorded = JSON.parse(readFileSync(recording, 'utf8')) as Record<string, string>
  const { status, stdout } = spawnSync('python3', [script], { input: JSON.stringify(FILES), encoding: 'utf8' })
  const live = status === 0 ? JSON.parse(stdout) as Record<string, string> : {}
  const readings = { ...recorded, ...live }
  if (process.env['TAP_SNAPSHOT'] === '1') writeFileSync(recording, `${JSON.stringify(readings, null, 2)}\n`)
  return readings
}

t.test('K79: no client is said to take a skill that its own reader refuses', async (t) => {
  const readings = otherReadings()
  const clients = [...Object.keys(READERS), ...Object.keys(readings)] as TargetName[]
  const lengths = Object.values(readings).map((marks) => marks.length)
  t.strictSame(lengths, [FILES.length, FILES.length, FILES.length, FILES.length], 'TAP_SNAPSHOT=1 records')
  for (const [index, text] of FILES.entries()) {
    const { targets, findings } = await verdictsFor({ text }, clients)
    const isPlain = findings.every(({ code }) => !/^(?:yaml|name|fence|description_(?:missing|not_text))/.test(code))
    for (const { target, verdict } of targets) {
      const really = READERS[target]?.(text) ??
        { '+': 'taken', '-': 'not taken', '?': 'unknown' }[readings[target]?.[index] ?? '']
      const place = `${target} ${printable(text)}: ${verdict}`
      if (really === 'not taken' || really === 'changed') t.not(verdict, 'ok', place)
      // What is portable is taken by all of them.
      else if (isPlain) t.ok(verdict !== 'not_loaded' && verdict !== 'refused', place)
    }
  }
})
