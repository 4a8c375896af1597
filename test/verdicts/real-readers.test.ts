import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import matter from 'gray-matter'
import t from 'tap'
import { parse } from 'yaml'
import { type TargetName, TARGETS } from '../../src/verdicts/index.ts'
import { verdictsFor } from '../helper/verdicts.ts'

/** Values of which readers of YAML make different things. */
const VALUES = [
  '[a]', '{a: b}', '[a', '{a', '[a] b', '\n  - a', '\n  a: b', '- a', '5', '+5', '-a', '.', '1e3', '1.5e3', '0x1f', '017', '0o17',
  '1_000', '0x_1', '0b11', '-0b1', '1:30', '9:99', '190:20:30', '.inf', '+.inf', '.nan', 'true', 'yes', 'on', 'Off', 'null', 'NULL', '~', '',
  '2024-01-02', '2024-1-2', '2024-01-02 10:00', '2024-01-02T10:00:00Z', '""', '" "', '"5"', '"\\d"', '"\\x41"', '"\\u00e9"', '"\\e"',
  '"a\\\n  b"', '"a\n  b"', "'it''s'", "'a", '"a', '"a" b', "'a' b", '&x a', '*x', '*x y: z', '*.tsx', '**/*.ts', '[*.a]', '{a: *b}',
  '\n  - *b', '\n  a: *b', '!text x', '!!str 5', '!!int "5"', '!!null x', '!!binary aGk=', '!!set {a, b}', '!!set {a: }', '!!timestamp 2024-01-02',
  '!!omap [a: b]', '|\n  a: b', '|2\n  a', '| # a: b', '>\n  a', '> a: b', 'a\n  b', 'a\n b: c', 'a #b', '#a', 'a: b', 'a:', ': a', 'Use when: asked',
  '@a', '`a`', '%a', ', a', '] a', '} a', 'a\tb', '\ta', 'a\t#b', 'a\n\tb', '"a\tb"', '"\\ud83d"', '"\\ud83d\\ude00"', '"\\/"', '"\\x00"', '1.5', '.5', '5.', '1.5e+3', '12_000.5', 'True', 'y', 'n', 'N', '2024-13-45', '!!bool yes', '!!float 5', '!<tag:a> x', '? a', '<<', '=', 'a\u00a0b', '😀'
]

const FIELDS = 'name: demo\ndescription: D\n'

/** Main files of a skill called demo. */
const FILES: readonly string[] = [
  `--- \n${FIELDS}---\n`, `---\t\n${FIELDS}---\n`, `---\n${FIELDS}--- \n`, `---\n${FIELDS}---`, `----\n${FIELDS}----\n`, `\n---\n${FIELDS}---\n`,
  `---\n${FIELDS}---\n`.replaceAll('\n', '\r\n'), `---\n%YAML 1.1\n${FIELDS}---\n`, `---\nname: demo\n${FIELDS}---\n`,
  `---\n${FIELDS}license: &x b\ncompatibility: *x\n---\n`, `---\n${FIELDS}metadata: &x\n  b: c\n  <<: *x\n---\n`, `---\n${FIELDS}license: a\nlicense: b\n---\n`, '---\nname: demo\n\tdescription: D\n---\n', '---\nname: demo\ndescription:\tD\n---\n', `--- # c\n${FIELDS}---\n`, `# c\n---\n${FIELDS}---\n`, `---\n${FIELDS}...\n---\n`, `---\r${FIELDS.replaceAll('\n', '\r')}---\r`, `\ufeff---\n${FIELDS}---\n`, '---\n# c\nname: demo # c\ndescription: D\n---\n',
  '---\n{"name": "demo", "description": "D"}\n---\n', '---\n  name: demo\n  description: D\n---\n', '---\n"name": demo\n\'description\': D\n---\n',
  '---\n- name: demo\n---\n', '---\ndemo\n---\n', '---\nname: demo\n---\n', '---\ndescription: D\n---\n',
  ...VALUES.flatMap((value) => {
    const written = value === '' || value.startsWith('\n') ? value : ` ${value}`
    return [`name:${written}\ndescription: D\n`, `name: demo\ndescription:${written}\n`, `${FIELDS}license:${written}\n`]
      .map((fields) => `---\n${fields}---\n# Demo\n`)
  })
]

// The package has no types under this name.
const { load: loadYaml4 } = createRequire(import.meta.url)('js-yaml-4') as { readonly load: (source: string) => unknown }

/** Where a verdict is not what the clients do, by a part of the file. */
const EXCEPTIONS: ReadonlyArray<readonly [clients: readonly TargetName[], part: RegExp, why: string]> = [
  [['skills-cli', 'goose'], /" "/, 'they take a skill without a visible name or description'],
  [['skills-cli'], /!!(?:null x|bool yes|float 5)/, 'it passes over a tag that the value does not fit'],
  [['quick-validate', 'codex', 'goose'], /!!null x/, 'they do, in a field that they do not read'],
  [['opencode', 'quick-validate'], /: 0o17/, 'YAML 1.1 takes the octal numbers of YAML 1.2 as text'],
  [['quick-validate'], /\de3/, 'to PyYAML a number has a point, and a sign in its exponent'],
  [['quick-validate', 'opencode', 'gemini-cli'], /2024-13-45/, 'they fail on a date that there is not'],
  [['opencode', 'gemini-cli'], /license: !!bool yes/, 'js-yaml 3 and 4 know the tag, and not the word'],
  [['opencode'], /\n\tdesc|: \? a/, 'js-yaml 3 takes an indented tab, and a key without a value'],
  [['quick-validate', 'skills-ref'], /: (?:=|<<)\n/, 'they are keywords of YAML 1.1'],
  [['skills-ref'], /: (?:null|NULL|~)\n/, 'strictyaml takes a null that is written as text'],
  [['skills-ref', 'goose'], /^--- #/, 'they take what stands behind the fence as frontmatter'],
  [['goose'], /^---\n {2}name/, 'it takes away blanks of the first line alone'],
  [['codex', 'goose'], /license: a\nlicense/, 'serde_yaml minds fields alone that are read'],
  [['codex', 'goose'], /!!(?:set|omap)/, 'what is text to others because of an unknown tag is a list or mapping there']
]

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

/** The four clients that are not written in JavaScript: as they are here, and else as they were recorded. */
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

t.test('K79: what is said of clients is what their own parsers do, on generated frontmatter', async (t) => {
  const used = new Set<unknown>()
  const readings = otherReadings()
  const clients = [...Object.keys(READERS), ...Object.keys(readings)] as TargetName[]
  t.strictSame(Object.values(readings).map((marks) => marks.length), Array(4).fill(FILES.length), 'TAP_SNAPSHOT=1 records')
  for (const [index, file] of FILES.entries()) {
    const { targets } = await verdictsFor({ text: file }, clients)
    for (const { target, verdict } of targets) {
      const really = READERS[target]?.(file) ?? { '+': 'taken', '-': 'not taken' }[readings[target]?.[index] ?? '']
      const isTaken = verdict !== 'not_loaded' && verdict !== 'refused'
      const said = target === 'gemini-cli' && verdict === 'changed' ? 'changed' : isTaken ? 'taken' : 'not taken'
      if (said === really) continue
      const exception = EXCEPTIONS.find(([names, part]) => names.includes(target) && part.test(file))
      if (exception === undefined) {
        t.fail(`${target}: ${verdict}, but ${really} by ${TARGETS[target].source}: ${JSON.stringify(file)}`)
      }
      used.add(exception)
    }
  }
  t.strictSame(EXCEPTIONS.filter((each) => !used.has(each)), [], 'no exception is left over')
})
