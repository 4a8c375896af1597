import { createLocalDisk, type Disk } from '../../src/core/disk/disk.ts'

export type DiskCall = { [Name in keyof Disk]: Disk[Name] extends (...args: never[]) => unknown ? Name : never }[keyof Disk]

/**
 * A local disk that tells every call before it is made: `tell` may throw in its place. For calls on a descriptor the
 * path is the one that it was opened by.
 */
export function createToldDisk (tell: (call: DiskCall, path: string) => void): Disk {
  const local = createLocalDisk()
  const opened = new Map<number, string>()
  const pathOf = (descriptor: number) => opened.get(descriptor) ?? ''

  function told<Args extends readonly unknown[], Result> (call: DiskCall, method: (path: string, ...args: Args) => Result) {
    return (path: string, ...args: Args): Result => {
      tell(call, path)
      return method(path, ...args)
    }
  }

  return {
    stat: told('stat', local.stat),
    lstat: told('lstat', local.lstat),
    realpath: told('realpath', local.realpath),
    readdir: told('readdir', local.readdir),
    readdirBytes: told('readdirBytes', local.readdirBytes),
    readlink: told('readlink', local.readlink),
    async open (path, flags) {
      // The door opens a file twice: the second time by the number of the first.
      const through = /^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1]
      const name = through === undefined ? path : pathOf(Number(through))
      tell('open', name)
      const descriptor = await local.open(path, flags)
      opened.set(descriptor, name)
      return descriptor
    },
    fstat (descriptor) {
      tell('fstat', pathOf(descriptor))
      return local.fstat(descriptor)
    },
    read (descriptor, buffer, offset, length, position) {
      tell('read', pathOf(descriptor))
      return local.read(descriptor, buffer, offset, length, position)
    },
    close (descriptor) {
      tell('close', pathOf(descriptor))
      opened.delete(descriptor)
      return local.close(descriptor)
    },
    hasProc: local.hasProc
  }
}

/** What the operating system would throw. */
export function systemError (code: string): Error {
  return Object.assign(new Error(`${code}: errno -13, open '/secret/place'`), { code, errno: -13 })
}
