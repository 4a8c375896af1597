import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FollowedFile } from '../../src/operator/followed-file.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import type { Signal } from '../../src/core/shared/signal.ts'
import { createFaultyDisk } from '../helper/disk.ts'
import { saveAtomically, until } from '../helper/skills.ts'

const CHECK_MS = 5
/** No edit leaves the timestamps of a file that is so old as they are. */
const OLD_MS = 10_000

function parse (text: string): string {
  if (text.startsWith('broken')) throw new ConfigError(text)
  return text
}

/** The next value of a signal. */
async function next<T> (signal: Signal<T>): Promise<T> {
  const target = new EventTarget()
  // The file's own timer keeps no process alive.
  const alive = setInterval(() => {}, 60_000)
  let value: { readonly of: T } | undefined
  const stop = signal.subscribe((of) => {
    value = { of }
    target.dispatchEvent(new Event('value'))
  })
  await once(target, 'value')
  clearInterval(alive)
  stop()
  if (value === undefined) throw new Error('no value')
  return value.of
}

t.test('a file is read again when it changes, in place, by rename or by a link', async (t) => {
  const folder = t.testdir({ one: 'first', other: 'third' })
  const path = join(folder, 'one')
  const file = await FollowedFile.open(path, parse, CHECK_MS)
  t.teardown(() => { file.close() })
  t.equal(file.value, 'first')

  let changed = next(file.changed)
  writeFileSync(path, 'second')
  t.equal(await changed, 'second')
  t.equal(file.value, 'second')

  changed = next(file.changed)
  renameSync(join(folder, 'other'), path)
  t.equal(await changed, 'third')
})

t.test('a link to a folder that is exchanged, as Kubernetes does it, is followed', async (t) => {
  const folder = t.testdir({ v1: { file: 'first' }, link: t.fixture('symlink', 'data/file'), data: t.fixture('symlink', 'v1') })
  const file = await FollowedFile.open(join(folder, 'link'), parse, CHECK_MS)
  t.teardown(() => { file.close() })
  mkdirSync(join(folder, 'v2'))
  writeFileSync(join(folder, 'v2', 'file'), 'second')
  symlinkSync('v2', join(folder, 'data-new'))
  const changed = next(file.changed)
  renameSync(join(folder, 'data-new'), join(folder, 'data'))
  t.equal(await changed, 'second')
})

t.test('K60: the second of two edits in one second is seen, on a disk whose timestamps have whole seconds only', async (t) => {
  const folder = t.testdir({ one: 'read 0', key: 'key 0' })
  const [path, key] = [join(folder, 'one'), join(folder, 'key')]
  const parseBoth = (text: string, reads: (path: string, text: string) => void): string => {
    const named = readFileSync(key, 'utf8')
    reads(key, named)
    return `${text}, ${named}`
  }
  // A clock that stands still for so long gives every edit of this test the same timestamps.
  const file = await FollowedFile.open(path, parseBoth, CHECK_MS, createFaultyDisk({ stepMs: 2_000 }))
  t.teardown(() => { file.close() })
  for (let edit = 1; edit < 5; edit++) {
    let changed = next(file.changed)
    writeFileSync(path, `read ${edit}`)
    t.equal(await changed, `read ${edit}, key ${edit - 1}`)
    changed = next(file.changed)
    writeFileSync(key, `key ${edit}`)
    t.equal(await changed, `read ${edit}, key ${edit}`)
  }
})

t.test('K60: while a file is broken or away the last good value stays, and the reason is told once', async (t) => {
  const folder = t.testdir({ one: 'good' })
  const path = join(folder, 'one')
  const file = await FollowedFile.open(path, parse, CHECK_MS)
  t.teardown(() => { file.close() })

  let failed = next(file.failed)
  writeFileSync(path, 'broken: line 1')
  t.match(await failed, { message: 'broken: line 1' })
  t.equal(file.value, 'good')
  t.match(file.remark('the lock'), /^the lock cannot be used/)

  failed = next(file.failed)
  rmSync(path)
  t.match(await failed, { message: `${path} cannot be read: ENOENT, there is no such file` })
  t.equal(file.value, 'good')

  failed = next(file.failed)
  writeFileSync(path, 'good')
  t.equal(await failed, undefined)
  t.equal(file.remark('the lock'), undefined)
})

t.test('K60: a file that was away and comes back unchanged, with its times, can be used again', async (t) => {
  const folder = t.testdir({ disk: { one: 'good' } })
  // Once it was read again, and is old, its own fingerprint is known.
  const file = await FollowedFile.open(join(folder, 'disk/one'), parse, CHECK_MS, createFaultyDisk({ ageMs: OLD_MS }))
  t.teardown(() => { file.close() })
  const changed = next(file.changed)
  writeFileSync(join(folder, 'disk/one'), 'better')
  t.equal(await changed, 'better')

  let failed = next(file.failed)
  renameSync(join(folder, 'disk'), join(folder, 'away'))
  t.match(await failed, { message: /ENOENT/ })
  failed = next(file.failed)
  renameSync(join(folder, 'away'), join(folder, 'disk'))
  t.equal(await failed, undefined)
  t.equal(file.remark('the lock'), undefined)
})

t.test('K60: a file is read when it, or one that its text names, has changed and is still; each value and each reason is told once', async (t) => {
  const folder = t.testdir({ one: 'text', key: 'first' })
  const [path, key] = [join(folder, 'one'), join(folder, 'key')]
  const disk = createFaultyDisk({ ageMs: OLD_MS })
  let isWritten = false
  let writes = 0n
  const stat: typeof disk.stat = async (path) => {
    const stats = await disk.stat(path)
    if (isWritten && stats !== undefined) stats.mtimeNs -= ++writes
    return stats
  }
  let parsed = 0
  const file = await FollowedFile.open(path, (_text, reads) => {
    parsed++
    const named = readFileSync(key, 'utf8')
    reads(key, named)
    return parse(named)
  }, CHECK_MS, { stat })
  t.teardown(() => { file.close() })
  const [changed, failed]: [string[], Array<ConfigError | undefined>] = [[], []]
  file.changed.subscribe((value) => { changed.push(value) })
  file.failed.subscribe((error) => { failed.push(error) })
  const again = async (path: string, text: string) => {
    const before = parsed
    saveAtomically(path, text)
    await until(() => parsed > before)
  }
  await until(() => parsed === 2)
  isWritten = true
  writeFileSync(key, 'second')
  const before = disk.calls.get('stat') ?? 0
  await until(() => (disk.calls.get('stat') ?? 0) > before + 10)
  t.equal(parsed, 2, 'not while it is being written, and not while it is as it was')
  isWritten = false
  await until(() => changed.length === 1)
  await again(key, 'broken')
  await again(path, 'other text')
  await again(key, 'third')
  await again(key, 'third')
  await again(key, 'fourth')
  t.strictSame(changed, ['second', 'third', 'fourth'])
  t.match(failed, [{ message: 'broken' }, undefined])
  t.equal(failed.length, 2)
})

t.test('K60: a pipe in the place of the file is refused, and ends no reading', async (t) => {
  const folder = t.testdir({ one: 'good' })
  const path = join(folder, 'one')
  const file = await FollowedFile.open(path, parse, CHECK_MS)
  t.teardown(() => { file.close() })

  const failed = next(file.failed)
  rmSync(path)
  execFileSync('mkfifo', [path])
  // Of the file that is away, and of the pipe: the first may not be seen.
  let error = await failed
  if (error?.message.endsWith('ENOENT') === true) error = await next(file.failed)
  t.match(error, { message: `${path} cannot be read: it is no regular file` })

  const changed = next(file.changed)
  writeFileSync(`${path}.new`, 'better')
  renameSync(`${path}.new`, path)
  t.equal(await changed, 'better')
  t.equal(file.remark('the lock'), undefined)
})

t.test('a file that cannot be used at the start is refused', async (t) => {
  const folder = t.testdir({ one: 'broken' })
  await t.rejects(FollowedFile.open(join(folder, 'one'), parse), ConfigError)
  await t.rejects(FollowedFile.open(join(folder, 'two'), parse), ConfigError)
})
