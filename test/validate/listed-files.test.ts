import { join } from 'node:path'
import t from 'tap'
import { listFiles } from '../../src/validate/listed-files.ts'
import { createFaultyDisk, osError } from '../helper/disk.ts'
import { skill } from '../helper/skills.ts'

t.test('K79: a list of files has those that are there and may be read, and says what is left out', async (t) => {
  const path = join(t.testdir({ demo: skill('demo', { 'b.md': 'x', 'a.md': 'y', 'gone.md': 'x', 'secret.md': 'x', tool: '\x7fELF', sub: { 'c.md': 'z' } }) }), 'demo')
  const opened: string[] = []
  const disk = createFaultyDisk({
    intercept (operation, path) {
      if (operation === 'lstat' && path.endsWith('gone.md')) throw osError('ENOENT')
      if (operation === 'open' && path.endsWith('secret.md')) throw osError('EACCES')
      if (operation === 'open') opened.push(path)
    }
  })
  const { files = [], findings = [] } = await listFiles(disk, { folder: { name: 'demo', type: 'project', path, realPath: path, linked: false }, filter: undefined, ignoreFile: undefined }) ?? {}
  t.strictSame(files.map((file) => [file.path, file.size_bytes]).slice(1), [['a.md', 1], ['b.md', 1], ['sub/c.md', 1], ['tool', 4]])
  t.match(findings, [{ code: 'file_unreadable', file: 'secret.md' }, { code: 'file_program', file: 'tool' }])
  t.equal(findings.length, 2)
  t.equal(disk.calls.get('close'), opened.length, 'what was opened is closed')
})
