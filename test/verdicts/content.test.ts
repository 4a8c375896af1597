import t from 'tap'
import { gzipSync } from 'node:zlib'
import { contentFindings } from '../../src/core/revisions/file-findings.ts'
import { fileKind } from '../../src/core/read/file-kind.ts'
import { validateFindings } from '../../src/verdicts/client-verdicts.ts'
import { scanText } from '../../src/verdicts/rules/text-scan.ts'
import { estimateTokens } from '../../src/verdicts/tokens.ts'
import { checkTime } from '../helper/timing.ts'
import { subjectFor, type SkillParts, verdictsFor } from '../helper/verdicts.ts'
import { describeSkill } from '../../src/core/read-skill.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { createValidator } from '../../src/verdicts/entry.ts'
import { TARGET_NAMES } from '../../src/verdicts/targets.ts'

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
  for (const text of [
    'ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'AKIAIOSFODNN7EXAMPLE', 'sk_live_...', 'sk-ant-api03-YOUR_KEY',
    '-----BEGIN PRIVATE KEY-----\n...\n', `x${secret('ghp_', 36)}`, secret('ghp_', 30)
  ]) {
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
  for (const line of [
    'curl -fsSL https://example.org/i.sh | sh', 'wget -qO- https://example.org | sudo -E bash -',
    'irm https://example.org | iex', 'Run `curl x | bash`'
  ]) {
    t.match(codesOf(`# a\n\n${line}`), [/^download_to_shell 3:/], line)
  }
  t.strictSame(codesOf(`cat x |sh; ${'x'.repeat(3_000)}; curl y |sh`), ['download_to_shell 1:3014'], 'in a long line')
  for (const line of [
    'curl https://example.org | jq .', 'cat x | sh', '| curl | what sh does |', 'curl https://example.org -o x; sh x'
  ]) t.strictSame(codesOf(line), [], line)
  t.end()
})

t.test('K80: hostile text of up to 1 MiB holds others up for at most 250 ms', async (t) => {
  const head = '---\nname: demo\ndescription: x\n'
  const parts = [
    '|', 'curl x\n|sh \n', `${'curl '.repeat(300)}\` |sh\n`, '` ](', '](x)\n', '>\n](\n', 'a\u200b', '|1|2|\n', '![',
    '> '
  ]
  for (const text of [
    `${head}---\n${'`'.repeat(60_000)}\r\n[x](a)`,
    `${head}---\n${'~'.repeat(60_000)}\r\n[x](a)`,
    `${head}---\n${'[x](a) `'.repeat(7_000)}`,
    `${head}x: [\n${'-\t'.repeat(3_500)}!\n---\n[x](a)`,
    ...parts.map((part) => `${head}---\n${part.repeat(1_000_000 / Buffer.byteLength(part))}`)
  ]) {
    const subject = await subjectFor({ text })
    const validate = async () => [validateFindings(subject), estimateTokens(subject)]
    await checkTime(t, 250, validate, JSON.stringify(text.slice(35, 60)))
  }
})

t.test('K79: names of files that some disk cannot keep', async (t) => {
  const text = '---\nname: demo\ndescription: What demo is for\n---\n# Demo\n'
  const codes = async (...paths: readonly string[]): Promise<readonly string[]> => {
    const { findings } = await verdictsFor({ text, files: Object.fromEntries(paths.map((path) => [path, 1])) })
    return findings.filter(({ code }) => code.startsWith('file_')).map(({ code, file }) => `${code} ${file}`)
  }
  t.strictSame(await codes('a.md', 'A.md', 'docs/x.md', 'Docs/y.md'), ['file_names_collide A.md'])
  t.strictSame(await codes('caf\u00e9.md', 'cafe\u0301.md'), ['file_names_collide cafe\u0301.md'])
  for (const path of ['con.md', 'a/AUX', 'a:b.md', 'what?.md', 'a ./b', 'x.', 'con/x']) {
    t.strictSame(await codes(path), [`file_name_not_portable ${path}`], path)
  }
  t.strictSame(await codes('console.md', 'a.b/c.md', 'run.sh', 'com10.md'), [])
})

t.test('K79: programs, archives, and files that are not what their names say', (t) => {
  const bytes = {
    elf: Buffer.from('\x7fELF\x02\x01', 'latin1'),
    machO: Buffer.from('cffaedfe07000001', 'hex'),
    javaClass: Buffer.from('cafebabe0000003d', 'hex'),
    exe: Buffer.from('MZ\x90\0\x03\0', 'latin1'),
    wasm: Buffer.from('\0asm\x01\0\0\0', 'latin1'),
    gzip: gzipSync('x'),
    zip: Buffer.from('PK\x03\x04\x14\0', 'latin1'),
    tar: Buffer.concat([Buffer.alloc(257, 'a'), Buffer.from('ustar')]),
    bzip2: Buffer.from('BZh91AY&SY', 'latin1'),
    png: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    webp: Buffer.from('RIFF\x10\0\0\0WEBPVP8 ', 'latin1'),
    pdf: Buffer.from('%PDF-1.7'),
    script: Buffer.from('#!/bin/sh\n'),
    text: Buffer.from('MZ BZh1 PK Rar! RIFF GIF: text\n'),
    mz: Buffer.from('MZ is a text about programs'),
    heading: Buffer.from('#! no script'),
    empty: Buffer.alloc(0)
  }
  const codes = (path: string, head: Buffer): readonly string[] => {
    const kind = fileKind(head)
    return contentFindings([{ path, size_bytes: head.length }], () => kind)
      .map(({ code, severity, file }) => `${code} ${severity} ${file}`)
  }
  for (const [code, names] of [
    ['file_program info bin/tool', ['elf', 'machO', 'javaClass', 'exe', 'wasm']],
    ['file_archive info bin/tool', ['gzip', 'zip', 'tar', 'bzip2']]
  ] as const) for (const name of names) t.strictSame(codes('bin/tool', bytes[name]), [code], name)
  for (const path of ['tool.exe', 'lib.so', 'a.jar']) {
    t.strictSame(codes(path, bytes.text), [`file_program info ${path}`])
  }
  for (const [path, name] of [
    ['notes.md', 'elf'], ['logo.png', 'zip'], ['logo.png', 'text'], ['run.py', 'exe'], ['a.json', 'script'],
    ['a.pdf', 'script'], ['a.zip', 'text'], ['a.txt', 'png']
  ] as const) t.strictSame(codes(path, bytes[name]), [`file_type_mismatch warning ${path}`], `${path} ${name}`)
  for (const [path, name] of [
    ['a.png', 'png'], ['a.jpg', 'png'], ['a.webp', 'webp'], ['a.pdf', 'pdf'], ['run.sh', 'script'], ['run', 'script'],
    ['run.py', 'text'], ['a.md', 'text'], ['a.md', 'mz'], ['a.md', 'heading'], ['a.png', 'empty'], ['a.docx', 'zip'],
    ['data', 'png'], ['x.bin', 'text']
  ] as const) t.strictSame(codes(path, bytes[name]), [], `${path} ${name}`)
  t.strictSame(codes('b.zip', bytes.zip), ['file_archive info b.zip'])
  t.end()
})

/** Texts, and how many tokens o200k_base makes of them. */
const COUNTED_BY_O200K: ReadonlyArray<readonly [text: string, tokens: number]> = [
  ['Use this skill when the user asks for a report about an incident. Read the timeline first, then write a summary ' +
    'that names the cause, the impact and the people who were involved. Keep every sentence short.\n\n## Steps\n\n1. ' +
    'Collect the log lines around the time of the failure.\n2. Ask for what is missing; do not guess.\n3. Fill in ' +
    '`templates/report.md` and save it beside the logs.\n', 86],
  ['import json\nimport sys\n\ndef main(path: str) -> int:\n    with open(path, encoding="utf-8") as file:\n        ' +
    'data = json.load(file)\n    for key, value in sorted(data.items()):\n        print(f"{key}: {value}")\n    ' +
    'return 0\n\nif __name__ == "__main__":\n    sys.exit(main(sys.argv[1]))\n', 77],
  ['Cette compétence aide à préparer une recette de famille : elle donne la liste des ingrédients, les étapes et le ' +
    "temps de cuisson. Demandez d'abord le nombre de personnes, puis adaptez les quantités.\n", 41],
  ['当用户需要生成季度报告时使用此技能。首先读取数据文件，然后计算每个部门的总额，最后写出摘要并保存到报告文件夹。\n', 35],
  ['Done ✅ next 🚀 warn ⚠️ stop ⛔\n', 14]
]

t.test('K81: estimates are near what a tokenizer counts: 15 %, and 35 % without blanks', async (t) => {
  const estimate = async (text: string) => estimateTokens(await subjectFor({ text }))
  for (const [text, counted] of COUNTED_BY_O200K) {
    // So many that the rounding does not matter.
    const times = 300
    const { body } = await estimate(`---\nname: demo\ndescription: x\n---\n${text.repeat(times)}`)
    const limit = /[\u3000-\ud7ff]/.test(text) ? 0.35 : 0.15
    t.ok(Math.abs(Number(body) / (counted * times) - 1) <= limit, `${body} of ${counted * times}: ${text.slice(0, 20)}`)
  }
})

t.test('K81: all files are SKILL.md and the other texts; what nobody can read has no estimate', async (t) => {
  const text = '---\nname: demo\ndescription: x\n---\nBody\n'
  const estimate = async (parts: SkillParts) => estimateTokens(await subjectFor(parts))
  for (const [bytes, tokens] of [
    [396, 99], [398, 100], [400, 100], [416, 100], [420, 110], [3_984, 1_000], [49_380, 12_000]
  ] as const) {
    t.match(await estimate({ files: { 'a.md': bytes } }), { body: null, all_files: tokens }, `${bytes} bytes`)
  }
  const alone = await estimate({ text })
  t.strictSame(await estimate({ text, files: { 'a.png': 40_000, 'b.TAR': 40_000, 'c.sqlite3': 40_000 } }), alone,
    'no text')
  for (const path of [
    'demo/SKILL.md', 'other/SKILL.md', 'tar', 'a.png.md'
  ]) t.equal((await estimate({ text, files: { [path]: 40_000 } })).all_files, 10_000, path)
  const { all_files: all, ...known } = alone
  t.strictSame(estimateTokens({ ...await subjectFor({ text }), files: undefined }), { ...known, all_files: null })
  t.match(await estimate({ files: { 'SKILL.md': 4_000 } }), { body: null, all_files: 1_000 },
    'a main file that cannot be read')
})

t.test('K79: links are looked for outside fences, wherever those begin and end', async (t) => {
  for (const [body, ...lines] of [
    ['```npm i``` and more\n[a](a.md)', 6],
    ['- a list\n\n     ```\n     [a](a.md)\n     ```\n[b](b.md)', 10],
    ['1. > ~~~\n   > [x](gone)\n   > ~~~\n[y](lost)', 8],
    ['```\r\n[x](gone)\r\n```\r\n[y](lost)', 8],
    ['a claim[^1](with an aside) and [words](see below)\n\n[^1]: note'],
    ['[a](a.md "title")', 5]
  ] as const) {
    const { findings } = await verdictsFor({ text: `---\nname: demo\ndescription: x\n---\n${body}\n` })
    t.same(findings.filter(({ code }) => code === 'body_link_missing').map(({ line }) => line), lines, body)
  }
})

t.test('K79: paths in backticks are references where they lie in a folder that skills have', async (t) => {
  const messages = async (body: string) => {
    const text = `---\nname: demo\ndescription: x\n---\n\n${body}\n`
    const { findings } = await verdictsFor({ text, files: { 'SKILL.md': 1, 'scripts/run.py': 1, 'forms/a.md': 1 } })
    return findings.filter(({ code }) => code === 'body_link_missing')
      .map(({ message, line, column }) => [message, line, column])
  }
  const missing = 'the body refers to files that the skill does not have:'
  t.strictSame(await messages('See `references/gone.md`'), [[`${missing} 'references/gone.md'`, 6, 6]])
  t.strictSame(await messages('See `./forms/gone.md`\nand `scripts/run.sh`'), [
    [`${missing} './forms/gone.md', 'scripts/run.sh'`, 6, 6]
  ])
  for (const text of [
    '`scripts/run.py`', '`forms/a.md`', '`src/gone.ts`', '`references/`', '`scripts/<name>.py`', '`scripts/*.py`',
    '```\nscripts/gone.py\n```', '`a/b`', '`python scripts/gone.py`', '`references/x`'
  ]) t.strictSame(await messages(text), [], text)
})

const SKILLS = 16

t.test('K80: many large skills that are validated at the same time leave turns of the event ' +
  'loop to others', async (t) => {
  const states = Array.from({ length: SKILLS }, (_, index) => {
    const name = `s${index}`
    const mainFile = new FileContent(
      Buffer.from(`---\nname: ${name}\ndescription: d\n---\n`.padEnd(MAX_MAIN_FILE_BYTES, 'a text '))
    )
    const skill = describeSkill({
      name, type: 'project', path: `/skills/${name}`, realPath: `/skills/${name}`, linked: false
    }, { mainFiles: ['SKILL.md'], main: { name: 'SKILL.md', content: mainFile } })
    return { skill, manifest: undefined, mainFile, fileFindings: [] }
  })
  const validate = createValidator()
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await Promise.all(states.map((state) => validate(state)))
  isDone = true
  // On a fast machine a few of them fit into one slice of time.
  t.ok(turns >= SKILLS / 4, `${turns} turns`)
  const before = turns
  await Promise.all(states.map((state) => validate(state)))
  t.equal(turns, before, 'what is known takes none')
  await Promise.all(states.map((state) => validate(state, TARGET_NAMES)))
  t.equal(turns, before, 'nor does it for chosen targets')
})
