import { posix, win32 } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { parseRelativePath } from '../../../src/core/disk/relative-path.ts'
import { hasForbiddenSequence, isSafeName } from '../../../src/core/shared/skill-name.ts'
import { codePoint } from '../../helper/code-point.ts'

/** Pieces of which attacks on paths are made, and ordinary ones. */
const piece = fc.constantFrom('..', '.', '', 'a', 'bc', ' ', '...', '..a', 'a..', 'C:', '%2e%2e', '\0', '\uD800', 'SKILL.md', '~', '\n', 'é')
const path = fc.array(fc.tuple(piece, fc.constantFrom('/', '\\')), { maxLength: 8 })
  .map((parts) => parts.map(([text, separator], index) => index === parts.length - 1 ? text : text + separator).join(''))

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
  for (const [text, expected] of inside) t.match(parseRelativePath(text), { kind: 'inside', path: expected }, JSON.stringify(text))
  t.end()
})

t.test('K19: a path that is absolute or climbs out is refused, also one that comes back', (t) => {
  const outside = [
    '..', '../', '../x', '../demo/x', './../x', 'a/../..', 'a/../../b', 'a/../../a/b',
    '/', '/etc/passwd', '//etc/passwd', '/srv/skills/demo/SKILL.md',
    '\\', '\\etc', '\\\\server\\share', '\\\\?\\C:\\x', '//server/share',
    'C:\\Windows', 'c:/Windows', 'Z:\\', '..\\..\\..\\Windows\\System32', '..\\x', 'a\\..\\..\\b', 'a/..\\..\\b', 'a\\../../b',
    'a\\b/../../x', '../\0', '/\0', '../../../../../../../../etc/passwd'
  ]
  for (const text of outside) t.same(parseRelativePath(text), { kind: 'outside' }, JSON.stringify(text))
  t.end()
})

t.test('K18: nothing is an invalid path, K19: NUL and half a character name no file', (t) => {
  t.same(parseRelativePath(''), { kind: 'empty' })
  for (const text of ['\0', 'a\0b', 'SKILL.md\0.txt', '\uD800', 'a/\uDC00']) t.same(parseRelativePath(text), { kind: 'unusable' }, JSON.stringify(text))
  t.end()
})

t.test('K19: no text whatever becomes a path that leaves, in the reading of any platform', (t) => {
  fc.assert(fc.property(fc.oneof(path, fc.string({ unit: codePoint, maxLength: 40 })), (text) => {
    const parsed = parseRelativePath(text)
    if (parsed.kind !== 'inside') return
    const place = posix.join('/base/skill', parsed.path)
    if (!`${place}/`.startsWith('/base/skill/')) throw new Error(`${text} → ${place}`)
    if (!`${win32.join('C:\\base\\skill', text)}\\`.startsWith('C:\\base\\skill\\')) throw new Error(`${text} on Windows`)
    if (parsed.path !== '.' && parsed.path.replace(/\/$/, '').split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) throw new Error(`unresolved: ${text}`)
    if (/\0/.test(parsed.path)) throw new Error('NUL')
  }), { numRuns: 2_000 })
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
  }), { numRuns: 2_000 })
  t.end()
})

t.test('K4: names that may be a skill', (t) => {
  for (const name of ['demo', 'Demo Skill', 'a.b', '__proto__', 'constructor', 'toString', 'C:', 'trailing.', 'trailing ', '"', "'", '日本', '\u{1F600}', '%2e', '-', 'x'.repeat(255)]) {
    t.ok(isSafeName(name), JSON.stringify(name))
  }
  for (const name of ['', '.', '..', '.hidden', '.git', 'a..b', 'a/b', 'a\\b', '/a', 'a\nb', 'a\tb', '\x7f', '\x85', 'a\0b', '\uD800']) {
    t.notOk(isSafeName(name), JSON.stringify(name))
  }
  t.end()
})

t.test('K16: the seeds refuse a name that is empty or holds `/`, `\\` or `..`, and no other', (t) => {
  fc.assert(fc.property(fc.oneof(path, fc.string()), (name) => {
    const expected = name === '' || ['/', '\\', '..'].some((sequence) => name.includes(sequence))
    return hasForbiddenSequence(name) === expected && !(expected && isSafeName(name))
  }))
  t.end()
})
