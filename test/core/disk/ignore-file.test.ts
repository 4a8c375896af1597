import t from 'tap'
import { parseIgnoreFile, unreadableIgnoreFile } from '../../../src/core/disk/ignore-file.ts'
import { MAX_IGNORE_PATTERNS } from '../../../src/core/shared/limits.ts'

function hides (text: string, path: string, isFolder = false): boolean {
  const rules = parseIgnoreFile(Buffer.from(text))
  if ('problem' in rules) throw new Error(rules.problem)
  return rules.filter.hides(path, isFolder)
}

function problemOf (bytes: Buffer | string): string | undefined {
  const rules = parseIgnoreFile(Buffer.from(bytes))
  return 'problem' in rules ? rules.problem : undefined
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
  for (const odd of ['', '!', '[', '[]', '\\', '/', '//', '.', '..', './a', '../a', '\0', '[z-a]', '[[:nope:]]', '{a,b}', '(', '+', '^$', '\uFEFFa', 'a\\ ']) {
    t.equal(problemOf(odd), undefined, JSON.stringify(odd))
    for (const path of ['a', 'a/b', '..a', '\\', 'a\\b', ' ', '(']) t.type(hides(odd, path), 'boolean', `${JSON.stringify(odd)} on ${path}`)
  }
  t.end()
})

t.test('a path too deep to be matched is hidden', (t) => {
  t.ok(hides('nothing', Array(40).fill('a').join('/')))
  t.notOk(hides('nothing', Array(20).fill('a').join('/')))
  t.end()
})

t.test('the same text is the same rules, and thousands of answers are not kept', (t) => {
  t.equal(parseIgnoreFile(Buffer.from('a')).id, parseIgnoreFile(Buffer.from('a')).id)
  t.not(parseIgnoreFile(Buffer.from('a')).id, parseIgnoreFile(Buffer.from('b')).id)
  t.not(unreadableIgnoreFile('x').id, unreadableIgnoreFile('y').id)
  const rules = parseIgnoreFile(Buffer.from('*.log'))
  for (let index = 0; index < 3_000; index++) {
    if (!('filter' in rules) || !rules.filter.hides(`${index}.log`, false) || rules.filter.hides(`${index}.md`, false)) t.fail(`${index}`)
  }
  t.end()
})
