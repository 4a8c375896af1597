import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findSkills } from '../../src/core/layout/find-skills.ts'
import { DiskTree } from '../../src/sources/folder/disk-tree.ts'
import { createFaultyDisk, failing, outcome, skillText } from '../helper/skills.ts'

const LIMIT = 1_000

t.test('K86: a main file that the disk does not give now is no file that is not there', async (t) => {
  const root = t.testdir({ a: { 'SKILL.md': skillText('a') } })
  const disk = createFaultyDisk()
  const tree = await DiskTree.open(root, [], disk)
  t.equal(String(await tree.read('a/SKILL.md', LIMIT)), skillText('a'))
  for (const [code, expected] of [['EMFILE', /^Error: EMFILE/], ['EIO', /^Error: EIO/], ['EACCES', /^undefined$/], ['ENOENT', /^undefined$/]] as const) {
    disk.intercept = failing('open', 'SKILL.md', code)
    t.match(await outcome(async () => String(await tree.read('a/SKILL.md', LIMIT))), expected, code)
  }
  let size = 0
  disk.intercept = (operation) => { if (operation === 'read') writeFileSync(join(root, 'a/SKILL.md'), 'x'.repeat(++size)) }
  t.match(await outcome(() => tree.read('a/SKILL.md', LIMIT)), /changed/, 'a file that changes without pause')
})

t.test('K86: what is no file, too large or outside is not read', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'canary',
    other: { 'shared.md': 'shared' },
    root: { 'leaving.md': link('../secret'), 'inside.md': link('a/plain.md'), 'shared.md': link('../other/shared.md'), a: { 'plain.md': 'plain', 'large.md': 'x'.repeat(LIMIT + 1) } }
  })
  execFileSync('mkfifo', [join(base, 'root/pipe.md')])
  const tree = await DiskTree.open(join(base, 'root'), [join(base, 'other')])
  const read = async (file: string) => String(await tree.read(file, LIMIT))
  t.equal(await read('a/plain.md'), 'plain')
  t.equal(await read('inside.md'), 'plain')
  t.equal(await read('shared.md'), 'shared', 'a target that the operator named')
  for (const file of ['leaving.md', 'pipe.md', 'a/large.md', 'a', 'nothing.md']) t.equal(await read(file), 'undefined', file)
})

t.test('K86: a folder that was looked for in vain is found as soon as it is there', async (t) => {
  const root = t.testdir({ '.claude': {}, a: { 'SKILL.md': skillText('a') } })
  const tree = await DiskTree.open(root)
  for (const folder of ['skills', '.claude/skills', '.agents/skills']) t.strictSame(await tree.entries(folder), [], folder)
  const add = (folder: string): void => {
    mkdirSync(join(root, folder, 'new'), { recursive: true })
    writeFileSync(join(root, folder, 'new/SKILL.md'), skillText('new'))
  }
  for (const [folder, hint] of [['skills', 'skills'], ['.claude/skills', '.claude'], ['.agents/skills', '.agents']] as const) {
    add(folder)
    t.ok(await tree.update(['', hint]), folder)
    t.match(await tree.entries(folder), [{ name: 'new', kind: 'folder' }], folder)
    t.notOk(await tree.update(['', hint]), 'nothing happened')
  }
})

t.test('K86: a path of very many folders in a manifest is a bad one, and costs no other plugin', async (t) => {
  const far = `./${'d/'.repeat(100_000)}x`
  const manifest = JSON.stringify({ plugins: [{ name: 'far', source: far }, { name: 'p', source: './p', strict: false, skills: [far, './a'] }] })
  const root = t.testdir({ '.claude-plugin': { 'marketplace.json': manifest }, p: { a: { 'SKILL.md': skillText('a') } } })
  const { skills, leftOut } = await findSkills(await DiskTree.open(root), { layout: 'marketplace', name: 'x' })
  t.strictSame(skills, [{ name: 'a', path: 'p/a' }])
  const shown = `${far.slice(0, 120)}…`
  t.strictSame(leftOut, [{ path: shown, reason: 'bad_manifest' }, { path: shown, reason: 'bad_manifest' }])
})
