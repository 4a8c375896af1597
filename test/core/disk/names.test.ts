import fs from 'node:fs'
import { dirname, join, posix, win32 } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { parseIgnoreFile } from '../../../src/core/read/ignore-file.ts'
import { parseRelativePath } from '../../../src/core/read/relative-path.ts'
import { MAX_IGNORE_PATTERNS } from '../../../src/core/read/ignore-file.ts'
import { codePoint } from '../../helper/code-point.ts'
import { skill, startManager } from '../../helper/skills.ts'

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
    ['docs/*\n!docs/a.md', ['docs/b.md'], ['docs/a.md', 'docs']],
    ['# comment\n\n \\#a\r\nb\r\n', ['b'], ['# comment', 'c']],
    ['**/tmp/**', ['x/tmp/a', 'tmp/a'], ['tmp']],
    ['a?[0-9]', ['ab1'], ['a1', 'ab']],
    ['é.md', ['é.md'], ['e.md']]
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

t.test('K19: what is refused as a traversal leaves in some reading, and all that does is refused', (t) => {
  fc.assert(fc.property(path, (text) => {
    const climbs = [text.split('/'), text.split(/[/\\]/)].some((segments) => {
      let depth = 0
      return segments.some((segment) => {
        if (segment === '..') depth--
        else if (segment !== '' && segment !== '.') depth++
        return depth < 0
      })
    })
    const absolute = posix.isAbsolute(text) || win32.isAbsolute(text)
    if ((parseRelativePath(text).kind === 'outside') !== (climbs || absolute)) throw new Error(JSON.stringify(text))
  }), { numRuns: 500 })
  t.end()
})
