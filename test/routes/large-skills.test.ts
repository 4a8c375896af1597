// One skill of any size takes nothing from the others: each api that lists skills, with too much in one of them.
import { type Dirent, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../../src/core/shared/limits.ts'
import { localDisk, type Disk } from '../../src/core/read/disk.ts'
import { buildService, type Service } from '../helper/build.ts'
import { createFaultyDisk } from '../helper/disk.ts'
import { openEvents } from '../helper/event-stream.ts'
import { modernRequest } from '../helper/mcp.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const FILES = { large: skill('large'), small: skill('small', { 'a.md': 'a' }) }

interface Entry {
  readonly name: string
  readonly revision: string | null
  readonly valid: boolean
  readonly findings: ReadonlyArray<{ readonly code: string }>
}

async function entriesOf (service: Service): Promise<readonly Entry[]> {
  return ((await service.fetch('/catalog')).json() as { skills: Entry[] }).skills
}

/** What lists say of `small`, beside `large`. */
async function checkLists (t: Test, service: Service, code: string): Promise<void> {
  const [large, small] = await entriesOf(service)
  t.match(large, { name: 'large', revision: null, valid: true })
  t.match(large?.findings.at(-1), { code })
  t.match(small, { name: 'small', revision: /^sha256:/, findings: [] })
  for (const index of ['agent-skills', 'skills']) {
    const { skills } = (await service.fetch(`/.well-known/${index}/index.json`)).json() as {
      skills: Array<{ name: string }>
    }
    t.same(skills.map(({ name }) => name), ['small'], index)
  }
  t.match(await (await fetch(`${service.url}/mcp`, modernRequest({ method: 'skills/list' }))).text(),
    'skill://small/a.md')
  t.match((await service.fetch('/catalog?q=small%20large')).json(), { total: 2 })
  t.match((await service.fetch('/skills')).json(), { skills: ['large', 'small'] })
}

/** A change of the other skill is reported. */
async function checkEvents (service: Service): Promise<void> {
  await until(() => service.skills.refresher.state.status === 'watching')
  const stream = await openEvents(service.url)
  writeFileSync(join(service.root, 'small/a.md'), 'changed')
  await stream.until('the change', () => stream.events.some(({ data }) => data['name'] === 'small'))
  stream.destroy()
}

async function checkRefusals (t: Test, service: Service): Promise<void> {
  for (const path of ['files', 'archive.zip', 'files/SKILL.md?revision=current', '?revision=current']) {
    const answer = await service.fetch(`/skills/large${path.startsWith('?') ? '' : '/'}${path}`)
    t.equal(answer.status, 413, path)
    t.match(answer.json(), { code: 'skill_too_large' }, path)
  }
  t.match(await service.fetch('/skills/large', { headers: { accept: 'text/markdown' } }),
    { status: 200, text: skillText('large') })
  t.match(await service.fetch('/skills/large/files/SKILL.md'), { status: 200, text: skillText('large') })
}

t.test('K9: a file of terabytes keeps nobody else\'s entry back, and is streamed', async (t) => {
  let reads = 0
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => { if (call === 'read' && file.endsWith('huge.bin')) reads++ }
  })
  const service = await buildService(t, {
    files: FILES,
    options: {
      disk, watcher: true, prepare: (folder) => { makeHuge(join(folder, 'skills/large/huge.bin')) }
    }
  })
  await checkLists(t, service, 'too_many_bytes')
  await checkRefusals(t, service)
  t.equal(reads, 0, 'nobody has read it')
  const head = await service.fetch('/skills/large/files/huge.bin', { method: 'HEAD' })
  t.ok(Number(head.headers.get('content-length')) > MAX_SKILL_BYTES)
  t.equal(head.headers.get('etag'), null, 'nobody knows its digest')
  t.match(await service.fetch('/skills/large/files/huge.bin', { headers: { range: 'bytes=0-9' } }),
    { status: 206, bytes: Buffer.alloc(10) })
  t.match(await service.fetch('/skills/large/files/huge.bin', { headers: { range: 'bytes=0-9', 'if-match': '"x"' } }),
    { status: 413 })
  await checkEvents(service)
  truncateSync(join(service.root, 'large/huge.bin'), 10)
  t.match((await service.fetch('/skills/large/files')).json(),
    { files: [{ path: 'SKILL.md' }, { path: 'huge.bin', size_bytes: 10 }] }, 'as soon as it is small')
})

/** As large as the file system has it: of 8 TiB on ext4, of nothing but a hole. */
function makeHuge (path: string): void {
  writeFileSync(path, '')
  try {
    truncateSync(path, 8 * 1_024 ** 4)
  } catch {
    truncateSync(path, 50 * 1_024 ** 3)
  }
}

/** One file more than a skill may have: to write them all takes longer than the test. */
function withManyFiles (disk: Disk): Disk {
  return {
    ...disk,
    lstat: (path) => disk.lstat(path.replace(/file-\d+$/, 'SKILL.md')),
    async readdir (path) {
      const entries = await disk.readdir(path)
      const [first] = entries
      if (first === undefined || !path.endsWith('/large')) return entries
      const more = Array.from({ length: MAX_SKILL_ENTRIES },
        (_, index): Dirent => Object.create(first, { name: { value: `file-${index}` } }))
      return [...more, ...entries]
    }
  }
}

t.test('K9: a skill with too many files keeps nobody else\'s entry back, and its document is served', async (t) => {
  const disk = createFaultyDisk({ disk: withManyFiles(localDisk) })
  const service = await buildService(t, { files: FILES, options: { disk, watcher: true } })
  await checkLists(t, service, 'too_many_files')
  await checkRefusals(t, service)
  await checkEvents(service)
})
