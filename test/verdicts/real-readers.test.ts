import { createRequire } from 'node:module'
import matter from 'gray-matter'
import t from 'tap'
import { parse } from 'yaml'
import { verdictsFor } from '../helper/verdicts.ts'

// The package has no types under this name.
const { load: loadYaml4 } = createRequire(import.meta.url)('js-yaml-4') as {
  readonly load: (source: string) => unknown
}

/** Values of which readers of YAML make different things. */
const VALUES = [
  '[a]', '{a: b}', '[a', '{a', '[a] b', '\n  - a', '\n  a: b', '- a', '5', '+5', '-a', '.', '1e3', '1.5e3', '0x1f', '017', '0o17',
  '1_000', '0x_1', '0b11', '-0b1', '1:30', '9:99', '190:20:30', '.inf', '+.inf', '.nan', 'true', 'yes', 'on', 'Off', 'null', 'NULL', '~', '',
  '2024-01-02', '2024-1-2', '2024-01-02 10:00', '2024-01-02T10:00:00Z', '""', '" "', '"5"', '"\\d"', '"\\x41"', '"\\u00e9"', '"\\e"',
  '"a\\\n  b"', '"a\n  b"', "'it''s'", "'a", '"a', '"a" b', "'a' b", '&x a', '*x', '*x y: z', '*.tsx', '**/*.ts', '[*.a]', '{a: *b}',
  '\n  - *b', '\n  a: *b', '!text x', '!!str 5', '!!int "5"', '!!null x', '!!binary aGk=', '!!set {a, b}', '!!set {a: }', '!!timestamp 2024-01-02',
  '!!omap [a: b]', '|\n  a: b', '|2\n  a', '| # a: b', '>\n  a', '> a: b', 'a\n  b', 'a\n b: c', 'a #b', '#a', 'a: b', 'a:', ': a', 'Use when: asked',
  '@a', '`a`', '%a', ', a', '] a', '} a', 'a\tb', '\ta', 'a\u00a0b', '😀'
]

const FIELDS = 'name: demo\ndescription: D\n'

const FILES = [
  `--- \n${FIELDS}---\n`, `---\t\n${FIELDS}---\n`, `---\n${FIELDS}--- \n`, `---\n${FIELDS}---`, `----\n${FIELDS}----\n`, `\n---\n${FIELDS}---\n`,
  `---\n${FIELDS}---\n`.replaceAll('\n', '\r\n'), `---\n%YAML 1.1\n${FIELDS}---\n`, `---\nname: demo\n${FIELDS}---\n`,
  `---\n${FIELDS}a: &x b\nc: *x\n---\n`, `---\n${FIELDS}a: &x {b: c}\nd:\n  <<: *x\n---\n`, '---\n# c\nname: demo # c\ndescription: D\n---\n',
  '---\n{"name": "demo", "description": "D"}\n---\n', '---\n  name: demo\n  description: D\n---\n', '---\n"name": demo\n\'description\': D\n---\n',
  '---\n- name: demo\n---\n', '---\ndemo\n---\n', '---\nname: demo\n---\n', '---\ndescription: D\n---\n',
  ...VALUES.flatMap((value) => {
    const written = value === '' || value.startsWith('\n') ? value : ` ${value}`
    return [`name:${written}\ndescription: D\n`, `name: demo\ndescription:${written}\n`, `${FIELDS}note:${written}\n`]
      .map((fields) => `---\n${fields}---\n# Demo\n`)
  })
]

/** What is said otherwise than a reader does, by a part of the file. */
const EXCEPTIONS: ReadonlyArray<readonly [reader: string, part: string, why: string]> = [
  ['skills-cli', '" "', 'it lists a skill without a visible name or description'],
  ['skills-cli', '!!null x', 'it passes over a tag that the value does not fit'],
  ['opencode', ': 0o17', 'js-yaml 3 takes the octal numbers of YAML 1.2 as text']
]

type Reading = 'taken' | 'changed' | 'not taken'

/** What each client does with a file: its own parser, and what its source does with the result. */
const READERS: Readonly<Record<string, (file: string) => Reading>> = {
  // skills CLI 1.7.4, dist/cli.mjs
  'skills-cli': (file) => {
    const [, source] = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?/.exec(file) ?? []
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

t.test('K79: what is said of three clients is what their own parsers do, on generated frontmatter', async (t) => {
  const used = new Set<unknown>()
  for (const file of FILES) {
    const { targets } = await verdictsFor({ text: file }, ['skills-cli', 'opencode', 'gemini-cli'])
    for (const [reader, read] of Object.entries(READERS)) {
      const verdict = targets.find(({ target }) => target === reader)?.verdict
      const said = verdict === 'not_loaded' || verdict === 'refused' ? 'not taken' : 'taken'
      const really = read(file)
      const exception = EXCEPTIONS.find(([name, part]) => name === reader && file.includes(part))
      const isChanged = reader === 'gemini-cli' && verdict === 'changed'
      if ((isChanged ? 'changed' : said) === really) continue
      if (exception === undefined) t.fail(`${reader}: ${verdict}, but ${really}: ${JSON.stringify(file)}`)
      used.add(exception)
    }
  }
  t.strictSame([...used].length, EXCEPTIONS.length, 'no exception is left over')
})
