import { basename, dirname, resolve } from 'node:path'
import type { Awaitable } from '../../shared/async.ts'
import { closeQuietly, type Disk } from '../disk.ts'
import { pathFrom } from '../paths.ts'
import type { DiskGuard } from './guard.ts'
import { LinkedAreas } from './linked-areas.ts'

const THROUGH_DESCRIPTOR = /^\/proc\/self\/fd\/(\d+)$/

/** A disk that is asked through the guard. */
export interface GuardedDisk extends Disk {
  /** Names of the entries of the root that hang with an area. */
  namesIn (area: string): readonly string[]
  /** Forgets all links in the root but these. */
  keepLinks (names: { has (name: string): boolean }): void
}

/**
 * The same disk for what is in a root, with all calls made through the guard.
 * @param linkTargets absolute paths of the folders outside that links in the root may lead into
 */
export function guardDisk (guard: DiskGuard, disk: Disk, root: string, linkTargets: readonly string[] = []): GuardedDisk {
  /** Names of areas by what is open in them. */
  const opened = new Map<number, string>()
  const rootPaths = new Set([root])
  const linked = new LinkedAreas(linkTargets)

  function nameOf (path: string): string {
    const descriptor = THROUGH_DESCRIPTOR.exec(path)?.[1]
    if (descriptor !== undefined) return opened.get(Number(descriptor)) ?? ''
    const below = belowRoot(path)
    return below === undefined ? linked.areaOf(path) : linked.areaOfEntry(below.split('/', 1)[0] ?? '')
  }

  function belowRoot (path: string): string | undefined {
    for (const rootPath of rootPaths) {
      const below = pathFrom(rootPath, path)
      if (below !== undefined) return below
    }
    return undefined
  }

  function noteRealPath (path: string, realPath: string): void {
    if (path === root) rootPaths.add(realPath)
    linked.addRealPath(path, realPath)
    if (!rootPaths.has(dirname(path))) return
    if (belowRoot(realPath) === undefined) linked.tie(basename(path), realPath)
    else linked.untie(basename(path))
  }

  /** The text of a link says which disk it leads to before that disk is asked. */
  function noteText (path: string, text: string): void {
    const target = resolve(dirname(path), text)
    if (rootPaths.has(dirname(path)) && belowRoot(target) === undefined && linked.allowedFolderOf(target) !== undefined) linked.tie(basename(path), target)
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
    readlink: ask(async (path) => {
      const text = await disk.readlink(path)
      noteText(path, text)
      return text
    }),
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
    namesIn: (area) => linked.namesIn(area),
    keepLinks (names) { linked.keep(names) },
    hasProc: disk.hasProc
  }
}
