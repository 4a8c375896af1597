// A writer that meets every moment of a request: the disk itself writes, before the calls that answer it.
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService, type Service } from '../helper/build.ts'
import { createFaultyDisk } from '../helper/disk.ts'
import { skill } from '../helper/skills.ts'

/** Everything that is made of all files of a skill. */
async function ofAllFiles (service: Service): Promise<string[]> {
  const index = (await service.fetch('/.well-known/agent-skills/index.json')).json() as { readonly skills: ReadonlyArray<{ readonly url: string }> }
  return ['/skills/demo/archive.zip', '/skills/demo/files', '/skills/demo?revision=current', ...index.skills.map(({ url }) => new URL(url, `${service.url}/.well-known/agent-skills/`).pathname)]
}

t.test('K45 K48 K53: of a skill that is written without a pause archives and artifacts are 503 with Retry-After, of one that holds in between 200', async (t) => {
  const disk = createFaultyDisk()
  const service = await buildService(t, { files: { demo: skill('demo', { a: 'a' }) }, options: { disk, keep: { keepMs: 0 } } })
  const targets = await ofAllFiles(service)
  t.equal(targets.length, 4)
  let writes = 0
  let isOver = () => false
  disk.intercept = (operation, _path, file) => {
    if (operation === 'close' && file.includes('demo') && !isOver()) fs.writeFileSync(join(service.root, 'demo/a'), 'a'.repeat(++writes % 100))
  }
  fs.writeFileSync(join(service.root, 'demo/a'), 'other')
  const statuses = await Promise.all(targets.map(async (target) => {
    const { status, headers, text } = await service.fetch(target)
    t.match(headers.get('retry-after'), /^[1-9]\d*$/, target)
    t.match(JSON.parse(text), { code: 'skill_changing' }, target)
    return status
  }))
  t.strictSame(statuses, targets.map(() => 503))
  const begun = writes
  t.ok(begun > 0)
  isOver = () => writes >= begun + 1
  t.equal((await service.fetch('/skills/demo/archive.zip')).status, 200, 'a state that holds is waited for')
})
