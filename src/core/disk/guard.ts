import type { Disk } from './disk.ts'
import { DISK_ANSWER_MS, MAX_DISK_CALLS } from '../limits.ts'
import type { Awaitable } from '../async.ts'

export interface DiskGuardOptions {
  /** In milliseconds. Default DISK_ANSWER_MS. */
  readonly answerMs?: number
  /** A place has ceased to answer, or answers again. */
  readonly onChange: (place: DiskPlace, isAnswering: boolean) => void
}

/** What answers or hangs as one: a folder of a root with all that is in it, or the root. */
export interface DiskPlace {
  /** Path of the root, as configured. */
  readonly root: string
  /** Name of the folder; '' is the root itself, without which nothing below it is asked. */
  readonly name: string
}

interface Place extends DiskPlace {
  isRunning: boolean
  /** Calls that have not been answered in time, and still hold a thread. */
  late: number
  readonly waiting: Call[]
  /** What is left to do when it answers again. */
  readonly afterwards: Array<() => void>
}

interface Call {
  readonly start: () => void
  readonly refuse: (reason: Error) => void
}

const THROUGH_DESCRIPTOR = /^\/proc\/self\/fd\/(\d+)$/

/**
 * Keeps a disk that hangs from holding up what lies elsewhere. A call to a dead network mount never returns, and holds one of
 * the few threads that all of them share: so a place is asked one thing at a time, and all places together leave a thread
 * free. A call that takes too long fails with ETIMEDOUT, and until it does return so does every other one to that place,
 * at once: whoever asks is told, and nothing piles up. Calls that a disk answers in the same turn pass unchanged.
 */
export class DiskGuard {
  readonly #answerMs: number
  readonly #onChange: DiskGuardOptions['onChange']
  /** Those that are being asked. */
  readonly #places = new Map<string, Place>()
  readonly #late = new Set<Place>()
  /** Places with calls that wait for nothing but a thread. */
  readonly #ready: Place[] = []
  #running = 0

  constructor ({ answerMs = DISK_ANSWER_MS, onChange }: DiskGuardOptions) {
    this.#answerMs = answerMs
    this.#onChange = onChange
  }

  /** Places that do not answer. */
  get hanging (): readonly DiskPlace[] {
    return [...this.#late]
  }

  /** The same disk, guarded, for what is in this root. */
  guard (disk: Disk, root: string): Disk {
    /** Names of places, by the descriptors of what is open in them. */
    const opened = new Map<number, string>()
    /** The paths that lead to the root. */
    const roots = new Set([root])

    function nameAt (path: string): string {
      const descriptor = THROUGH_DESCRIPTOR.exec(path)?.[1]
      if (descriptor !== undefined) return opened.get(Number(descriptor)) ?? ''
      for (const base of roots) {
        const prefix = base === '/' ? base : `${base}/`
        if (path.startsWith(prefix)) return path.slice(prefix.length).split('/', 1)[0] ?? ''
      }
      return ''
    }

    const run = <T>(name: string, call: () => Awaitable<T>, discard?: (value: T) => void): Awaitable<T> => {
      if (this.#isLate(root, '') || this.#isLate(root, name)) throw noAnswer()
      return this.#run(this.#placeOf(root, name), call, discard)
    }
    const ask = <T>(call: (path: string) => Awaitable<T>) => (path: string) => run(nameAt(path), () => call(path))
    const askOpened = <T>(descriptor: number, call: () => Awaitable<T>) => run(opened.get(descriptor) ?? '', call)

    return {
      stat: ask((path) => disk.stat(path)),
      lstat: ask((path) => disk.lstat(path)),
      readdir: ask((path) => disk.readdir(path)),
      readdirBytes: ask((path) => disk.readdirBytes(path)),
      readlink: ask((path) => disk.readlink(path)),
      realpath: ask((path) => thenSame(disk.realpath(path), (realPath) => { if (path === root) roots.add(realPath) })),
      open (path, flags) {
        const name = nameAt(path)
        const opening = run(name, () => disk.open(path, flags), (descriptor) => { void release(disk, descriptor) })
        return thenSame(opening, (descriptor) => { opened.set(descriptor, name) })
      },
      fstat: (descriptor) => askOpened(descriptor, () => disk.fstat(descriptor)),
      read: (descriptor, buffer, offset, length, position) =>
        askOpened(descriptor, () => disk.read(descriptor, buffer, offset, length, position)),
      close: (descriptor) => {
        const name = opened.get(descriptor) ?? ''
        opened.delete(descriptor)
        if (this.#isLate(root, name)) {
          this.#placeOf(root, name).afterwards.push(() => { void release(disk, descriptor) })
          return undefined
        }
        const closing = disk.close(descriptor)
        return closing instanceof Promise ? this.#watch({ root, name }, closing) : closing
      },
      hasProc: disk.hasProc
    }
  }

  #isLate (root: string, name: string): boolean {
    return (this.#places.get(keyOf(root, name))?.late ?? 0) > 0
  }

  #placeOf (root: string, name: string): Place {
    const key = keyOf(root, name)
    let place = this.#places.get(key)
    if (place === undefined) {
      place = { root, name, isRunning: false, late: 0, waiting: [], afterwards: [] }
      this.#places.set(key, place)
    }
    return place
  }

  #forgetIdle ({ root, name, isRunning, late, waiting }: Place): void {
    if (!isRunning && late === 0 && waiting.length === 0) this.#places.delete(keyOf(root, name))
  }

  #run<T> (place: Place, call: () => Awaitable<T>, discard?: (value: T) => void): Awaitable<T> {
    if (this.#isFull) throw noAnswer()
    if (!place.isRunning && this.#running < MAX_DISK_CALLS) return this.#start(place, call, discard)
    return new Promise((resolve, reject) => {
      if (!place.isRunning && place.waiting.length === 0) this.#ready.push(place)
      place.waiting.push({
        start: () => {
          try {
            resolve(this.#start(place, call, discard))
          } catch (error) {
            reject(error)
          }
        },
        refuse: reject
      })
    })
  }

  #start<T> (place: Place, call: () => Awaitable<T>, discard?: (value: T) => void): Awaitable<T> {
    place.isRunning = true
    this.#running++
    const end = () => { this.#end(place) }
    let value: Awaitable<T> | undefined
    try {
      value = call()
    } finally {
      if (!(value instanceof Promise)) end()
    }
    if (!(value instanceof Promise)) return value
    const watched = this.#watch(place, value, discard)
    value.then(end, end)
    return watched
  }

  #end (place: Place): void {
    place.isRunning = false
    this.#running--
    if (place.waiting.length > 0) this.#ready.push(place)
    else this.#forgetIdle(place)
    this.#startWaiting()
  }

  #startWaiting (): void {
    while (this.#running < MAX_DISK_CALLS) {
      const place = this.#ready.shift()
      if (place === undefined) return
      if (place.isRunning) continue
      place.waiting.shift()?.start()
      if (!place.isRunning && place.waiting.length > 0) this.#ready.push(place)
    }
  }

  /** @param discard gives back an answer that came too late */
  #watch<T> ({ root, name }: DiskPlace, value: Promise<T>, discard?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        this.#giveUp(this.#placeOf(root, name))
        reject(noAnswer())
      }, this.#answerMs)
      const settle = () => {
        clearTimeout(timer)
        if (isLate) this.#takeBack(this.#placeOf(root, name))
      }
      value.then((answer) => {
        settle()
        if (isLate) discard?.(answer)
        else resolve(answer)
      }, (error: unknown) => {
        settle()
        reject(error)
      })
    })
  }

  get #isFull (): boolean {
    return this.#late.size >= MAX_DISK_CALLS
  }

  #giveUp (place: Place): void {
    place.late++
    if (place.late > 1) return
    this.#late.add(place)
    for (const { refuse } of place.waiting.splice(0)) refuse(noAnswer())
    if (this.#isFull) for (const { waiting } of this.#ready.splice(0)) for (const { refuse } of waiting.splice(0)) refuse(noAnswer())
    this.#onChange(place, false)
  }

  #takeBack (place: Place): void {
    place.late--
    if (place.late > 0) return
    this.#late.delete(place)
    for (const act of place.afterwards.splice(0)) act()
    this.#forgetIdle(place)
    this.#onChange(place, true)
  }
}

/** No path holds a NUL. */
function keyOf (root: string, name: string): string {
  return `${root}\0${name}`
}

/** For whoever no longer waits for it. */
async function release (disk: Disk, descriptor: number): Promise<void> {
  try {
    await disk.close(descriptor)
  } catch {
    // Nobody is left to be told.
  }
}

function noAnswer (): Error {
  return Object.assign(new Error('ETIMEDOUT: the disk does not answer'), { code: 'ETIMEDOUT' })
}

/** The value as it is, once it has been used. */
function thenSame<T> (value: Awaitable<T>, use: (value: T) => void): Awaitable<T> {
  if (value instanceof Promise) return value.then((settled) => { use(settled); return settled })
  use(value)
  return value
}
