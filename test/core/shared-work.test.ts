// A hundred equal requests at once, and skills that take long to be read.
import { appendFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createCoalescer } from '../../src/core/shared/async.ts'
import { buildService, type Service } from '../helper/build.ts'
import { createFaultyDisk, type DiskOperation } from '../helper/disk.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const MIB = 1_048_576

/** A service with a skill of 10 MiB, and how often each operation was asked for since the last question. */
async function start (t: Test, ageMs: number) {
  const files = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`file-${index}.bin`, '']))
  const disk = createFaultyDisk({ ageMs })
  const prepare = (folder: string) => {
    for (const file of Object.keys(files)) writeFileSync(join(folder, 'skills/big', file), Buffer.alloc(MIB, file))
  }
  const service = await buildService(t, { files: { big: skill('big', files) }, options: { disk, prepare } })
  await service.skills.indexed()
  const callsSince = async (act: () => Promise<unknown>): Promise<ReadonlyMap<DiskOperation, number>> => {
    disk.calls.clear()
    await act()
    return new Map(disk.calls)
  }
  return { service, callsSince }
}

async function ask ({ app }: Service, times: number, path: string, method: 'GET' | 'HEAD'): Promise<Set<string>> {
  const answers =
    await Promise.all(Array.from({ length: times }, () => app.inject({ method, url: `/skills/big${path}` })))
  return new Set(answers.map(({ statusCode, headers, payload }) => `${statusCode} ${headers.etag} ${payload.length}`))
}

const REQUESTS = [
  { path: '/files', method: 'GET', ageMs: 60_000 },
  { path: '/files', method: 'GET', ageMs: 0 },
  { path: '/archive.zip', method: 'HEAD', ageMs: 60_000 },
  { path: '/archive.zip', method: 'HEAD', ageMs: 0 },
  { path: '/files/file-3.bin', method: 'HEAD', ageMs: 60_000 },
  { path: '', method: 'GET', ageMs: 60_000 },
  { path: '', method: 'GET', ageMs: 0 }
] as const

for (const { path, method, ageMs } of REQUESTS) {
  const what = `${method} ${path || 'the document'} of a skill that was edited ${ageMs === 0
? 'just now'
    : 'a minute ago'}`
  t.test(`K43 K44 K45 K51: a hundred times ${what} cost at most two`, async (t) => {
    const costOf = async (times: number) => {
      const { service, callsSince } = await start(t, ageMs)
      writeFileSync(join(service.root, 'big/SKILL.md'), skillText('big', `${'Words. '.repeat(10_000)}\n`))
      const before = process.cpuUsage()
      const calls = await callsSince(async () => {
        t.equal((await ask(service, times, path, method)).size, 1, 'all answers are equal')
      })
      const { user, system } = process.cpuUsage(before)
      return { reads: (calls.get('read') ?? 0) + (calls.get('readdir') ?? 0), ms: (user + system) / 1_000 }
    }
    const one = await costOf(1)
    const hundred = await costOf(100)
    t.comment(
      `${hundred.reads} reads and ${Math.round(hundred.ms)} ms instead of ${one.reads} and ${Math.round(one.ms)} ms`)
    t.ok(one.reads > 0)
    // An edit that was noticed by a request is compared once more in the background.
    t.ok(hundred.reads <= 2 * one.reads + 4)
    // A request costs a millisecond by itself. Without sharing it would be a hundred times.
    t.ok(hundred.ms < 10 * one.ms + 500)
  })
}

t.test('K51: a shared run begins after each call that gets its result', async (t) => {
  const share = createCoalescer<number>()
  let state = 0
  let finish = () => {}
  const job = async (): Promise<number> => {
    const read = state
    await new Promise<void>((resolve) => { finish = resolve })
    return read
  }
  const first = share('a', job)
  state = 1
  const later = [share('a', job), share('a', job)]
  t.equal(later[0], later[1])
  finish()
  t.equal(await first, 0)
  const latest = share('a', job)
  await setImmediate()
  finish()
  t.strictSame(await Promise.all([...later, latest]), [1, 1, 1], 'a call before the second run joins it')
  await t.rejects(share('a', () => Promise.reject(new Error('no'))))
  const after = share('a', job)
  finish()
  t.equal(await after, 1, 'a failure ends with its run')
})

t.test('K53: a list waits for no large skill, which is read in the background, nor for one that grows', async (t) => {
  const FILES = { grows: skill('grows'), large: skill('large'), small: skill('small', { 'a.md': 'a' }) }
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    ageMs: 60_000,
    intercept: async (operation, _path, file) => {
      if (operation !== 'read' || !file.endsWith('.bin')) return
      if (file.includes('/grows/')) appendFileSync(file, 'more')
      else await held
    }
  })
  const prepare = (folder: string) => {
    for (const name of ['grows', 'large']) {
      writeFileSync(join(folder, `skills/${name}/a.bin`), '')
      truncateSync(join(folder, `skills/${name}/a.bin`), 64 * MIB)
    }
  }
  const service = await buildService(t, { files: FILES, options: { disk, prepare } })
  interface Entry {
    readonly name: string,
    readonly revision: string | null,
    readonly findings: ReadonlyArray<{ readonly code: string }>
  }
  const catalog = async () => (await service.app.inject('/catalog')).json<{ skills: Entry[] }>().skills
  const indexed = async (path = 'agent-skills') => (await service.app.inject(`/.well-known/${path}/index.json`))
    .json<{ skills: Array<{ name: string }> }>().skills.map(({ name }) => name)
  const [grows, large, small] = await catalog()
  for (const entry of [grows, large]) {
    t.equal(entry?.revision, null)
    t.strictSame(entry?.findings.map(({ code }) => code), ['revision_pending'])
  }
  t.match(small, { revision: /^sha256:/ })
  for (const path of ['agent-skills', 'skills']) t.strictSame(await indexed(path), ['small'], path)
  release()
  await until(async () => (await catalog())[1]?.revision !== null)
  t.strictSame(await indexed('skills'), ['large', 'small'], 'as soon as it has been read')
  t.equal((await catalog())[0]?.revision, null)
})
