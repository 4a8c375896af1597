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
export const FILES: readonly string[] = [
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
