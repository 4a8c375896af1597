import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runHere } from '../helper/command-line.ts'
import { FINDING_EXAMPLES, writeExample } from '../helper/finding-examples.ts'

interface Report {
  readonly skills: ReadonlyArray<{ readonly path: string, readonly findings: ReadonlyArray<{ readonly code: string }> }>
}

t.test('K79: each wrong example of the documents has its finding, and the right one has not', async (t) => {
  const cwd = t.testdir()
  const folders = Object.entries(FINDING_EXAMPLES).flatMap(([code, example]) =>
    (['wrong', 'right'] as const).map((side) => {
      const folder = `${code}/${side}`
      mkdirSync(join(cwd, folder), { recursive: true })
      writeFileSync(join(cwd, folder, 'demo.md'), 'A text\n')
      writeExample(join(cwd, folder, 'other'), 'files', ['SKILL.md'])
      writeExample(join(cwd, folder, 'demo'), example.place, example[side])
      return folder
    }))
  const { stdout, stderr } = await runHere(['validate', ...folders, '--target', 'all', '--format', 'json'], { cwd })
  t.equal(stderr, '')
  const { skills } = JSON.parse(stdout) as Report
  const examples = skills.filter(({ path }) => path.endsWith('/demo'))
  t.equal(examples.length, folders.length)
  for (const { path, findings } of examples) {
    const [code, side] = path.split('/')
    const codes = findings.map((each) => each.code)
    t.equal(codes.includes(code ?? ''), side === 'wrong', `${path}: ${codes.join(' ')}`)
  }
})
