import fs from 'node:fs'
import { dirname, join, posix, win32 } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createSecret } from '../../../src/access/secret.ts'
import { decodeText } from '../../../src/core/read/decode.ts'
import { MAX_IGNORE_PATTERNS, parseIgnoreFile } from '../../../src/core/read/ignore-file.ts'
import { parseRelativePath } from '../../../src/core/read/relative-path.ts'
import { STOP_WORDS, tokenize } from '../../../src/core/search/words.ts'
import { compareCodePoints, printable, quote } from '../../../src/core/shared/text.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { maskSecrets, SECRET_PREFIXES } from '../../../src/secrets.ts'
import { codePoint, urlPath } from '../../helper/code-point.ts'
import { skill, startManager } from '../../helper/skills.ts'
import { checkTime } from '../../helper/timing.ts'

t.test('K11: the order is that of code points', (t) => {
  const names = ['b', 'a', 'B', 'ab', '', '\uFFFD', '\u{1F600}', '\uE000', 'é', '\u{10000}', '\uD7FF', '-', '_', '日本']
  const byCodePoints = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  t.strictSame(names.toSorted(compareCodePoints), names.toSorted(byCodePoints), 'which is that of UTF-8 bytes')
  t.notSame(names.toSorted(compareCodePoints), names.toSorted(), 'and not that of UTF-16 units')
  const character = fc.constantFrom('a', 'b', '\uD7FF', '\uE000', '\uFFFD', '\u{10000}', '\u{10FFFF}', '\u{1F600}')
  const name = fc.oneof(fc.string({ unit: codePoint }), fc.string({ unit: character, maxLength: 4 })).filter((text) =>
    text.isWellFormed())
  fc.assert(fc.property(name, name, (a, b) => Math.sign(compareCodePoints(a, b)) === byCodePoints(a, b)),
    { numRuns: 1_000 })
  t.end()
})

t.test('K79: quoted text stays in one line and cannot steer a terminal', async t => {
  const rows: Array<[string, string]> = [
    ['plain', "'plain'"],
    ['a\nb\r\tc', "'a\\nb\\r\\tc'"],
    ['\u001b[31mred', "'\\u{1b}[31mred'"],
    ['a\u202Eb', "'a\\u{202e}b'"],
    ['a\u2028b', "'a\\u{2028}b'"],
    ['\u{E0041}', "'\\u{e0041}'"],
    ['\uD800', "'\\u{d800}'"],
    ['技能 😀', "'技能 😀'"],
    ['a'.repeat(80), `'${'a'.repeat(80)}'`],
    ['a'.repeat(81), `'${'a'.repeat(80)}…'`],
    ['😀'.repeat(1_000_000), `'${'😀'.repeat(80)}…'`]
  ]
  for (const [text, expected] of rows) t.equal(quote(text), expected)
  fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => {
    const quoted = quote(text)
    return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(quoted) && quoted.isWellFormed() && quoted.length < 1_000
  }))
  t.equal(printable('é 😀 a\r\n\x1b[0m\u2028\u2029\u202e\u0085\ud800b'),
    'é 😀 a\\u000d\\u000a\\u001b[0m\\u2028\\u2029\\u202e\\u0085\\ud800b')
})

function encode (character: string, times: number): string {
  return times === 0 ? character : `%${'25'.repeat(times - 1)}${character.charCodeAt(0).toString(16)}`
}

t.test('K66: a secret is masked wherever it stands and however it is encoded', async () => {
  const kinds = Object.keys(SECRET_PREFIXES) as Array<keyof typeof SECRET_PREFIXES>
  fc.assert(fc.property(fc.constantFrom(...kinds), fc.array(fc.nat({ max: 3 }), {
    minLength: 42, maxLength: 42
  }), urlPath, (kind, times, around) => {
    const secret = [...createSecret(kind)].map((character, index) => encode(character, times[index] ?? 0)).join('')
    return !maskSecrets(`${around}/${secret}/${around}`).includes(secret.slice(-20))
  }))
})

t.test('K66: the rest of a text stays as it is', async (t) => {
  const token = createSecret('token')
  t.equal(maskSecrets(`//t/${token}/a?b=${token.toUpperCase()}`), '//t/-/a?b=-')
  t.equal(maskSecrets(token.slice(0, -10)), '-', 'most of one')
  for (const text of ['/skills/demo', '/skills/tasks_report', '/skills/a%20b_c', '/skills/sks_short', '/skills/%zz',
    '%'.repeat(100)]) {
    t.equal(maskSecrets(text), text)
  }
})

t.test('K66: a long text costs little', async (t) => {
  const start = performance.now()
  for (const part of ['%25', '25', 'sks_', '%73%6b', 's%2525', '_']) maskSecrets('%' + part.repeat(16_000))
  t.ok(performance.now() - start < 1_000)
})

function utf16be (text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16()
}

t.test('K20: the encodings, verbatim', (t) => {
  const table: ReadonlyArray<readonly [string, Buffer, string, string]> = [
    ['nothing', Buffer.alloc(0), '', 'utf-8'],
    ['ASCII', Buffer.from('a\r\nb\n\tc\f'), 'a\r\nb\n\tc\f', 'utf-8'],
    ['UTF-8', Buffer.from('é 日本 \u{1F600}'), 'é 日本 \u{1F600}', 'utf-8'],
    ['UTF-8 with BOM', Buffer.from('\uFEFFa'), '\uFEFFa', 'utf-8'],
    ['a BOM alone', Buffer.from('\uFEFF'), '\uFEFF', 'utf-8'],
    ['control characters in UTF-8', Buffer.from('\x1b[0m\x07'), '\x1b[0m\x07', 'utf-8'],
    ['UTF-16LE', Buffer.from('\uFEFFé\u{1F600}\r\n', 'utf16le'), '\uFEFFé\u{1F600}\r\n', 'utf-16le'],
    ['UTF-16BE', utf16be('\uFEFFé\u{1F600}\r\n'), '\uFEFFé\u{1F600}\r\n', 'utf-16be'],
    ['a UTF-16 BOM alone', Buffer.from([0xff, 0xfe]), '\uFEFF', 'utf-16le'],
    ['Latin-1', Buffer.from('caf\xe9 \xa0\xff\r\n', 'latin1'), 'café \xa0ÿ\r\n', 'latin-1'],
    ['an odd byte after a UTF-16 BOM', Buffer.from([0xff, 0xfe, 0x41]), 'ÿþA', 'latin-1']
  ]
  for (const [what, bytes, content, encoding] of table) t.same(decodeText(bytes), { content, encoding }, what)
  t.end()
})

t.test('K20: what is no text', (t) => {
  const table: Readonly<Record<string, Buffer>> = {
    NUL: Buffer.from('a\0b'),
    'NUL at the end': Buffer.from('text\0'),
    'UTF-16 without a BOM': Buffer.from('text', 'utf16le'),
    'a UTF-16 BOM before binary': Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x00, 0x00]),
    'half a surrogate pair': Buffer.from([0xff, 0xfe, 0x00, 0xd8]),
    'a C1 control': Buffer.from([0x61, 0x85, 0xe9]),
    DEL: Buffer.from([0x61, 0x7f, 0xe9]),
    'a C0 control': Buffer.from([0x61, 0x01, 0xe9]),
    PNG: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  }
  for (const [what, bytes] of Object.entries(table)) t.equal(decodeText(bytes), undefined, what)
  t.end()
})

t.test('K20: whatever the bytes, text gives them back', (t) => {
  const encodings = { 'utf-8': 'utf8', 'utf-16le': 'utf16le', 'latin-1': 'latin1' } as const
  fc.assert(fc.property(fc.oneof(fc.uint8Array(), fc.string({
    unit: codePoint
  }).map((text) => Buffer.from(text))), (array) => {
    const bytes = Buffer.from(array)
    const text = decodeText(bytes)
    if (text === undefined) return true
    const back = text.encoding === 'utf-16be'
      ? utf16be(text.content)
      : Buffer.from(text.content, encodings[text.encoding])
    return back.equals(bytes)
  }), { numRuns: 300 })
  t.end()
})

t.test('K8: hidden names', async (t) => {
  const everywhere = [
    '.git', '.hg', '.svn', 'node_modules', '__pycache__', '..data', '..2026_11_26_10_00_00.123', '...',
    '.AppleDouble', '@eaDir',
    '$RECYCLE.BIN', '.ssh', '.aws'
  ]
  const files = [
    '.env', '.env.local', '.env.production', '.env.example.local', '.env.', '.envrc', '.netrc', '.npmrc', 'id_rsa',
    'id_rsa.pub',
    'id_ed25519', 'id_ed25519_work', '.DS_Store', '._SKILL.md', 'Icon\r', 'Thumbs.db', 'thumbs.db', 'desktop.ini',
    'Desktop.ini',
    'SKILL.md~', '~', '.SKILL.md.swp', '.a.swo', '.a.swx', '.sw.swp', '4913', '.#SKILL.md', '.#', '#SKILL.md#', '##',
    'new\nline~',
    '.\u{1F600}.swp', '.SKILL.md.kate-swp', 'SKILL.md___jb_tmp___', 'SKILL.md___jb_old___', '~$report.docx',
    '.~lock.report.odt#',
    '.nfs000000000001', '.fuse_hidden0000001', '.goutputstream-ABC', '.syncthing.SKILL.md.tmp'
  ]
  const shown = [
    '.env.example', '.env.sample', '.env.template', 'env', '.ENV', 'x.env', '.ds_store', 'Thumbs.db.txt', '~a',
    'a.swp', '.swp',
    '.a.swap', '.a.sw', '49131', '04913', '.a#', '#a', 'a#', '#', '.gitignore', '.skillignore', 'SKILL.md', 'git',
    '.github', '.a',
    'Node_modules', 'a..b', 'a..', 'rsa', 'Icon', 'syncthing.tmp'
  ]
  const root = t.testdir({ demo: skill('demo') })
  for (const path of [...everywhere, ...files, ...shown].flatMap((name) => [`files/${name}`, `folders/${name}/a`])) {
    fs.mkdirSync(dirname(join(root, 'demo', path)), { recursive: true })
    fs.writeFileSync(join(root, 'demo', path), '')
  }
  const listed = (await (await startManager(t, [root])).read('demo', (skill) => skill.manifest())).files.map(
    ({ path }) => path)
  t.strictSame(listed.filter((path) => path.startsWith('files/')).sort(), shown.map((name) => `files/${name}`).sort())
  const folders = [...files, ...shown].map((name) => `folders/${name}/a`)
  t.strictSame(listed.filter((path) => path.startsWith('folders/')).sort(), folders.sort(),
    'such a folder is not such a file')
})

function hides (text: string, path: string, isFolder = false): boolean {
  const { problem, hides } = parseIgnoreFile(Buffer.from(text))
  if (problem !== undefined) throw new Error(problem)
  return hides(path, isFolder)
}

function problemOf (bytes: Buffer | string): string | undefined {
  return parseIgnoreFile(Buffer.from(bytes)).problem
}

t.test('K8: patterns are those of gitignore', (t) => {
  const cases: ReadonlyArray<readonly [text: string, hidden: readonly string[], shown: readonly string[]]> = [
    ['*.log', ['a.log', 'x/a.log', '.log'], ['a.log.txt', 'A.LOG']],
    ['/a', ['a', 'a/b'], ['x/a']],
    ['drafts/', ['drafts/a', 'x/drafts/a'], ['drafts']],
    ['*\n!SKILL.md', ['a', 'b/c'], ['SKILL.md']],
    ['# comment\n\n \\#a\r\nb\r\n', ['b'], ['# comment', 'c']]
  ]
  for (const [text, hidden, shown] of cases) {
    for (const path of hidden) t.ok(hides(text, path), `${JSON.stringify(text)} hides ${path}`)
    for (const path of shown) t.notOk(hides(text, path), `${JSON.stringify(text)} shows ${path}`)
  }
  t.ok(hides('drafts/', 'drafts', true))
  t.end()
})

t.test('K8: what is too much to be matched is refused, and says which line', (t) => {
  t.equal(problemOf('a\n*a*b*c\n'), 'has more than 2 wildcards in one part of line 2')
  t.match(problemOf('**/a/**/b/**/c'), /line 1/)
  t.match(problemOf('x\n'.repeat(MAX_IGNORE_PATTERNS + 1)), /more than 64 patterns/)
  t.equal(problemOf('# x\n\n'.repeat(1_000)), undefined, 'comments and empty lines do not count')
  t.equal(problemOf('# *.a, *.b and *.c\n*.log'), undefined, 'a comment may have stars')
  t.equal(problemOf('# *.a, *.b and *.c\n*a*b*c\n'), 'has more than 2 wildcards in one part of line 2')
  t.match(problemOf(Buffer.from([0xff])), /UTF-8/)
  for (const odd of ['', '!', '[', '[]', '\\', '/', '//', '.', '..', './a', '../a', '\0', '[z-a]', '[[:nope:]]',
    '{a,b}', '(', '+', '^$', '\uFEFFa', 'a\\ ']) {
    t.equal(problemOf(odd), undefined, JSON.stringify(odd))
    for (const path of ['a', 'a/b', '..a', '\\', 'a\\b', ' ', '(']) {
      t.type(hides(odd, path), 'boolean', `${JSON.stringify(odd)} on ${path}`)
    }
  }
  t.end()
})

/** Pieces of which attacks on paths are made, and ordinary ones. */
const piece = fc.constantFrom('..', '.', '', 'a', 'bc', ' ', '...', '..a', 'a..', 'C:', '%2e%2e', '\0', '\uD800',
  'SKILL.md', '~', '\n', 'é')
const path = fc.array(fc.tuple(piece, fc.constantFrom('/', '\\')), { maxLength: 8 })
  .map((parts) =>
    parts.map(([text, separator], index) => index === parts.length - 1 ? text : text + separator).join(''))

t.test('K19: what stays inside is resolved, for `/` only', (t) => {
  const inside: ReadonlyArray<readonly [string, string]> = [
    ['SKILL.md', 'SKILL.md'],
    ['./SKILL.md', 'SKILL.md'],
    ['docs//a.md', 'docs/a.md'],
    ['examples/../SKILL.MD', 'SKILL.MD'],
    ['a/b/../../c', 'c'],
    ['a/b/..', 'a/'],
    ['a/.', 'a/'],
    ['docs/', 'docs/'],
    ['SKILL.md/', 'SKILL.md/'],
    ['.', '.'],
    ['./', '.'],
    ['a/..', '.'],
    ['...', '...'],
    ['..a/b..', '..a/b..'],
    ['a\\b', 'a\\b'],
    ['a\\..\\b', 'a\\..\\b'],
    ['C:', 'C:'],
    ['C:x', 'C:x'],
    ['%2e%2e/%2e%2e/etc/passwd', '%2e%2e/%2e%2e/etc/passwd'],
    ['~/.ssh', '~/.ssh'],
    [' ', ' '],
    ['line\nbreak', 'line\nbreak'],
    ['．．/x', '．．/x']
  ]
  for (const [text, expected] of inside) {
    t.match(parseRelativePath(text), { kind: 'inside', path: expected }, JSON.stringify(text))
  }
  t.end()
})

t.test('K19: a path that is absolute or climbs out is refused, also one that comes back', (t) => {
  const outside = [
    '..', '../', '../x', '../demo/x', './../x', 'a/../..', 'a/../../b', 'a/../../a/b',
    '/', '/etc/passwd', '//etc/passwd', '/srv/skills/demo/SKILL.md',
    '\\', '\\etc', '\\\\server\\share', '\\\\?\\C:\\x', '//server/share',
    'C:\\Windows', 'c:/Windows', 'Z:\\', '..\\..\\..\\Windows\\System32', '..\\x', 'a\\..\\..\\b', 'a/..\\..\\b',
    'a\\../../b',
    'a\\b/../../x', '../\0', '/\0', '../../../../../../../../etc/passwd'
  ]
  for (const text of outside) t.same(parseRelativePath(text), { kind: 'outside' }, JSON.stringify(text))
  t.end()
})

t.test('K18: nothing is an invalid path, K19: NUL and half a character name no file', (t) => {
  t.same(parseRelativePath(''), { kind: 'empty' })
  for (const text of ['\0', 'a\0b', 'SKILL.md\0.txt', '\uD800', 'a/\uDC00']) {
    t.same(parseRelativePath(text), { kind: 'unusable' }, JSON.stringify(text))
  }
  t.end()
})

t.test('K19: no text whatever becomes a path that leaves, in the reading of any platform', (t) => {
  fc.assert(fc.property(fc.oneof(path, fc.string({ unit: codePoint, maxLength: 40 })), (text) => {
    const parsed = parseRelativePath(text)
    if (parsed.kind !== 'inside') return
    const place = posix.join('/base/skill', parsed.path)
    if (!`${place}/`.startsWith('/base/skill/')) throw new Error(`${text} → ${place}`)
    if (!`${win32.join('C:\\base\\skill', text)}\\`.startsWith('C:\\base\\skill\\')) {
      throw new Error(`${text} on Windows`)
    }
    if (parsed.path !== '.' &&
      parsed.path.replace(/\/$/, '').split('/').some((segment) =>
        segment === '' || segment === '.' || segment === '..')) throw new Error(`unresolved: ${text}`)
    if (/\0/.test(parsed.path)) throw new Error('NUL')
  }), { numRuns: 500 })
  t.end()
})

type Skills = Readonly<Record<string, {
  readonly label?: string
  readonly description?: string
  readonly headings?: readonly string[]
}>>

async function startSearch (t: Test, skills: Skills): Promise<SkillManager> {
  const root = t.testdir(Object.fromEntries(Object.entries(
    skills).map(([name, { label = name, description = '', headings = [] }]) => {
    const lines = ['---', `name: ${JSON.stringify(label)}`, `description: ${JSON.stringify(description)}`, '---',
      ...headings.map((text) => `# ${text}`), '']
    return [name, { 'SKILL.md': lines.join('\n') }]
  })))
  return await startManager(t, [root])
}

t.test('K46: ranking', async (t) => {
  const skills = await startSearch(t, {
    pdf: {},
    'fill-pdf-forms': {},
    'pdfs-of-many-kinds': { label: 'Portable documents' },
    reader: { description: 'Reads PDF' },
    manual: { headings: ['Introduction', 'PDF'] },
    other: { description: 'Nothing' },
    both: { description: 'merge lists' },
    one: { description: 'merge', headings: ['merge'] },
    'merging-things': {}
  })
  const found = await skills.search('pdf')
  t.same(found.slice(0, 2), ['pdf', 'fill-pdf-forms'], 'the name that is only the word first')
  t.same(new Set(found), new Set(['pdf', 'fill-pdf-forms', 'pdfs-of-many-kinds', 'reader', 'manual']))
  t.same(await skills.search('PDF'), found)
  t.equal((await skills.search('merge lists'))[0], 'both')
  t.same(await skills.search('portable'), ['pdfs-of-many-kinds'], "by the frontmatter's name")
  t.equal((await skills.search('merging'))[0], 'merging-things', 'the word itself before its other forms')
  const same = { description: 'x1' }
  t.same(await (await startSearch(t, { b: same, a: same, Z: same })).search('x1'), ['Z', 'a', 'b'])
})

t.test('K46: what a query finds', async (t) => {
  const skills = await startSearch(t, {
    calculator: { description: 'Exact arithmetic, no questions posed' },
    policy: {},
    weather: {},
    spreadsheet: {},
    cat: {},
    'commit-helper': { description: 'Writes commit messages' },
    'it-support': { description: 'What to do with a broken laptop' },
    'front-end': {},
    design: { description: 'Frontend pages' },
    csharp: { description: 'Code in C#' },
    templates: { description: 'Code in C++' },
    migrate: { description: 'From .NET to Java' },
    launch: { description: '🚀' },
    recettes: { description: 'Crème brûlée et œufs' },
    tokei: { description: '時計を読む' },
    biao: { headings: ['电子表格'] },
    strasse: { description: 'Die Straße, ΟΔΟΣ, ﬁle, ｶﾞ' },
    nodejs: { description: 'Node.js, read_my_file2' }
  })
  const table: ReadonlyArray<readonly [query: string, names: readonly string[], why?: string]> = [
    ['calcu', ['calculator'], 'the beginning of a word'],
    ['ca', [], 'two letters begin too much'],
    ['policies', ['policy']],
    ['wether', ['weather'], 'misspelt'],
    ['spredshet', ['spreadsheet']],
    ['cot', [], 'three letters are too few to be wrong'],
    ['how do I commit with the message', ['commit-helper'], 'small words are not searched for'],
    ['it', ['it-support'], 'but in names, when there is nothing else'],
    ['what is with there', []],
    ['frontend', ['design', 'front-end']],
    ['front-end', ['design', 'front-end']],
    ['c#', ['csharp']],
    ['C++', ['templates']],
    ['dotnet', ['migrate']],
    ['🚀', ['launch']],
    ['creme brulee', ['recettes']],
    ['BRÛL', ['recettes']],
    ['時計', ['tokei']],
    ['計', ['tokei']],
    ['表格', ['biao']],
    ['天下', [], 'no misspelling of another word'],
    ...['STRASSE', 'οδος', 'ガ'].map((query) => [query, ['strasse']] as const),
    ...['nodejs', 'readmy', 'myfile2'].map((query) => [query, ['nodejs']] as const)
  ]
  for (const [query, names, why = query] of table) {
    t.same([...await skills.search(query)].sort(), names, `${query}: ${why}`)
  }
  for (const query of ['', '   ', '.*', '(a+)+$', '[', '\\', '\0', '?', '*', '\ud800', '__proto__', 'toString']) {
    t.same(await skills.search(query), [], JSON.stringify(query))
  }
})

t.test('K64: a search finds exactly what a search in the visible skills alone finds', async (t) => {
  const word = fc.constantFrom(
    'merge', 'merging', 'merger', 'mergw', 'lists', 'front-end', 'frontend', 'c#', 'the', '日本語', '本', 'pdf', 'pdfs',
    '🚀'
  )
  const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(' '))
  const fields = fc.record({ description: text, headings: fc.array(text, { maxLength: 2 }), isVisible: fc.boolean() })
  const given = fc.array(fields, { maxLength: 12 })
  await fc.assert(fc.asyncProperty(given, fc.array(text, { minLength: 20, maxLength: 20 }), async (given, queries) => {
    const named = given.map((fields, index) => [String(index), fields] as const)
    const visible = named.filter(([, { isVisible }]) => isVisible)
    const names = new Set(visible.map(([name]) => name))
    const all = await startSearch(t, Object.fromEntries(named))
    const view = all.createView('some', () => (name: string) => names.has(name))
    const found = await Promise.all(queries.map((query) => view.search(query)))
    const alone = await startSearch(t, Object.fromEntries(visible))
    const expected = await Promise.all(queries.map((query) => alone.search(query)))
    return found.every((names, index) => [...names].sort().join() === [...expected[index] ?? []].sort().join())
  }), { numRuns: 20 })
})

t.test('K46: any text is found by its own words', async (t) => {
  const texts = fc.sample(fc.string({ unit: codePoint, minLength: 1, maxLength: 200 }), 100)
  const skills = await startSearch(t, Object.fromEntries(texts.map((label, index) => [`s${index}`, { label }])))
  for (const [index, text] of texts.entries()) {
    const isFound = (await skills.search(text)).includes(`s${index}`)
    t.equal(isFound, tokenize(text).some((word) => !STOP_WORDS.has(word)), JSON.stringify(text))
  }
})

t.test('K9: no text takes long or overflows the stack, whatever it unfolds to', async (t) => {
  const skills = await startSearch(t, { demo: { description: 'alpha beta' } })
  await skills.search('alpha')
  const units = ['a', 'ab ', '(a+)+$', 'a-', '日', '\u6f22\u5b57', '\ufdfa', '\u0301\u0323', '\uff9e\u0316',
    '\u05b0\u0591', '🚀']
  for (const unit of units) {
    const text = `a${unit.repeat(65_536 / unit.length)}`
    await checkTime(t, 100, () => skills.search(text), JSON.stringify(unit))
  }
})
