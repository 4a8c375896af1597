import type { Awaitable } from '../async.ts'
import type { Disk } from './disk.ts'
import type { DiskGuard } from './guard.ts'

const THROUGH_DESCRIPTOR = /^\/proc\/self\/fd\/(\d+)$/

/** The same disk for what is in a root, with all calls made through the guard. */
export function guardDisk (guard: DiskGuard, disk: Disk, root: string): Disk {
  /** Names of areas by what is open in them. */
  const opened = new Map<number, string>()
  const rootPaths = new Set([root])

  function nameOf (path: string): string {
    const descriptor = THROUGH_DESCRIPTOR.exec(path)?.[1]
    if (descriptor !== undefined) return opened.get(Number(descriptor)) ?? ''
    for (const rootPath of rootPaths) {
      const prefix = rootPath === '/' ? rootPath : `${rootPath}/`
      if (path.startsWith(prefix)) return path.slice(prefix.length).split('/', 1)[0] ?? ''
    }
    return ''
  }

  const ask = <T>(call: (path: string) => Awaitable<T>) => (path: string) => guard.ask(root, nameOf(path), () => call(path))
  const askOpened = <T>(descriptor: number, call: () => Awaitable<T>) => guard.ask(root, opened.get(descriptor) ?? '', call)

  return {
    stat: ask((path) => disk.stat(path)),
    lstat: ask((path) => disk.lstat(path)),
    readdir: ask((path) => disk.readdir(path)),
    readdirBytes: ask((path) => disk.readdirBytes(path)),
    readlink: ask((path) => disk.readlink(path)),
    realpath: ask((path) => withValue(disk.realpath(path), (realPath) => { if (path === root) rootPaths.add(realPath) })),
    open (path, flags) {
      const name = nameOf(path)
      const opening = guard.ask(root, name, () => disk.open(path, flags), (descriptor) => { void closeQuietly(disk, descriptor) })
      return withValue(opening, (descriptor) => { opened.set(descriptor, name) })
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

/** For a descriptor that nobody waits for. */
async function closeQuietly (disk: Disk, descriptor: number): Promise<void> {
  try {
    await disk.close(descriptor)
  } catch {}
}

/** The value as it is, once it has been used. */
function withValue<T> (value: Awaitable<T>, use: (value: T) => void): Awaitable<T> {
  if (value instanceof Promise) return value.then((resolved) => { use(resolved); return resolved })
  use(value)
  return value
}
