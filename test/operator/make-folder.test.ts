import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runHere } from '../helper/command-line.ts'
import { makeFolder } from '../../src/operator/make-folder.ts'

t.test('a folder is made with those above it, and one that is there is left as it is', async (t) => {
  const base = t.testdir({ file: '' })
  const path = join(base, 'a', 'b', 'c')
  await makeFolder(path, 0o700)
  await makeFolder(path, 0o755)
  t.equal(statSync(path).mode & 0o777, 0o700)
  await Promise.all(Array.from({ length: 64 }, (_, i) => makeFolder(join(base, 'x', 'y', String(i % 8), 'z'))))
  await t.rejects(makeFolder(join(base, 'file')), { code: 'EEXIST' })
  await t.rejects(makeFolder(join(base, 'file', 'a')), { code: 'ENOTDIR' })
})

t.test('a folder that the system refuses to make ends with an error, and names the remedy', { skip: existsSync('/proc/self') ? false : 'there is no /proc' }, async (t) => {
  await t.rejects(makeFolder('/proc/none'), { code: 'ENOENT' })
  await t.rejects(makeFolder('/proc/none/below'), { code: 'ENOENT' })
  const cwd = t.testdir({ skills: { a: { 'SKILL.md': '---\nname: a\ndescription: An a\n---\n' } } })
  for (const [argv, why] of [
    [['sync', '--state-dir', '/proc/none', 'git+file:///none'], /^skillserve(?: \w+)?: .*\/proc\/none.*\(ENOENT, there is no such folder\).*\n$/],
    [['export', '/proc/none', 'skills'], /^skillserve(?: \w+)?: .*\/proc\/none.*\(ENOENT, there is no such folder\).*\n$/]
  ] as const) {
    const { code, stderr } = await runHere(argv, { cwd })
    t.equal(code, 1)
    t.match(stderr, why)
  }
})
