import { basename, dirname } from 'node:path'
import type { Awaitable } from '../../ground/async.ts'
import { closeQuietly, type Disk } from '../disk.ts'
import { pathFrom } from '../paths.ts'
import type { DiskGuard } from './guard.ts'

const THROUGH_DESCRIPTOR = /^\/proc\/self\/fd\/(\d+)$/

/** The same disk for what is in a root, with all calls made through the guard. */
export function guardDisk (guard: DiskGuard, disk: Disk, root: string): Disk {
  /** Names of areas by what is open in them. */
  const opened = new Map<number, string>()
  const rootPaths = new Set([root])
  /** Names of links in the root, by the real paths outside of it that they lead to. */
  const linked = new Map<string, Set<string>>()
  const targets = new Map<string, string>()

  function nameOf (path: string): string {
    const descriptor = THROUGH_DESCRIPTOR.exec(path)?.[1]
    if (descriptor !== undefined) return opened.get(Number(descriptor)) ?? ''
    for (const rootPath of rootPaths) {
      const below = pathFrom(rootPath, path)
      if (below !== undefined) return below.split('/', 1)[0] ?? ''
    }
    for (let folder = linked.size === 0 ? '' : path; folder.length > 1; folder = dirname(folder)) {
      // Of several links to one folder the first counts for all.
      const [name] = linked.get(folder) ?? []
      if (name !== undefined) return name
    }
    return ''
  }

  function noteRealPath (path: string, realPath: string): void {
    if (path === root) rootPaths.add(realPath)
    if (!rootPaths.has(dirname(path)) || [...rootPaths].some((rootPath) => pathFrom(rootPath, realPath) !== undefined)) return
    const name = basename(path)
    const before = targets.get(name)
    if (before === realPath) return
    if (before !== undefined) linked.get(before)?.delete(name)
    if (before !== undefined && linked.get(before)?.size === 0) linked.delete(before)
    targets.set(name, realPath)
    const names = linked.get(realPath)
    if (names === undefined) linked.set(realPath, new Set([name]))
    else names.add(name)
  }

  const ask = <T>(call: (path: string) => Awaitable<T>) => (path: string) => guard.ask(root, nameOf(path), () => call(path))
  const askOpened = <T>(descriptor: number, call: () => Awaitable<T>) => guard.ask(root, opened.get(descriptor) ?? '', call)

  return {
    stat: ask((path) => disk.stat(path)),
    lstat: ask((path) => disk.lstat(path)),
    readdir: ask((path) => disk.readdir(path)),
    async opendir (path) {
      const name = nameOf(path)
      const folder = await guard.ask(root, name, () => disk.opendir(path), (late) => { void closeQuietly(() => late.close()) })
      return {
        read: () => guard.ask(root, name, () => folder.read()),
        close: () => guard.release(root, name, () => folder.close())
      }
    },
    readdirBytes: ask((path) => disk.readdirBytes(path)),
    readlink: ask((path) => disk.readlink(path)),
    realpath: ask(async (path) => {
      const realPath = await disk.realpath(path)
      noteRealPath(path, realPath)
      return realPath
    }),
    async open (path, flags) {
      const name = nameOf(path)
      const descriptor = await guard.ask(root, name, () => disk.open(path, flags), (late) => { void closeQuietly(() => disk.close(late)) })
      opened.set(descriptor, name)
      return descriptor
    },
    fstat: (descriptor) => askOpened(descriptor, () => disk.fstat(descriptor)),
    read: (descriptor, buffer, offset, length, position) => askOpened(descriptor, () => disk.read(descriptor, buffer, offset, length, position)),
    close (descriptor) {
      const name = opened.get(descriptor) ?? ''
      opened.delete(descriptor)
      return guard.release(root, name, () => disk.close(descriptor))
    },
    hasProc: disk.hasProc
  }
}
