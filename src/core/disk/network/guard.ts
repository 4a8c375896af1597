import type { Awaitable } from '../../shared/async.ts'
import { DISK_ANSWER_MS, MAX_DISK_CALLS } from '../../shared/limits.ts'
import { Signal } from '../../shared/signal.ts'
import { systemError } from '../../shared/system-errors.ts'

/**
 * What answers or hangs as one: a folder of a root with all that is in it, or the root itself, with the name ''. A folder outside that
 * links lead into has its path as its name.
 */
interface DiskArea {
  /** Path of the root, as configured. */
  readonly root: string
  readonly name: string
}

/** An area has ceased to answer, or answers again. */
export interface DiskAreaChange extends DiskArea {
  readonly isAnswering: boolean
}

interface Area extends DiskArea {
  isBusy: boolean
  /** Calls that have not returned, and those of them that were given up. */
  openCalls: number
  lateCalls: number
  /** Calls for the time when the area answers again. */
  readonly postponed: Array<() => Awaitable<void>>
}

interface WaitingCall {
  readonly area: Area
  readonly start: () => void
  readonly refuse: (error: Error) => void
}

/**
 * Keeps a disk that hangs from holding up the others, for roots on network disks. A call to a dead mount never returns and keeps
 * one of the four threads of the process. So each area is asked one thing at a time, and all areas together leave one thread
 * free. A call that takes longer than `answerMs` fails with ETIMEDOUT. Each other call to that area then fails at once, until
 * the first has returned.
 */
export class DiskGuard {
  readonly changed = new Signal<DiskAreaChange>()
  readonly #answerMs: number
  readonly #areas = new Map<string, Area>()
  readonly #hanging = new Set<Area>()
  #waiting: WaitingCall[] = []
  #running = 0

  /** @param answerMs in milliseconds */
  constructor (answerMs: number = DISK_ANSWER_MS) {
    this.#answerMs = answerMs
  }

  get hanging (): readonly DiskArea[] {
    return [...this.#hanging]
  }

  isHanging (root: string, name: string): boolean {
    return (this.#areas.get(keyOf(root, name))?.lateCalls ?? 0) > 0
  }

  /**
   * Makes a call to an area once the calls before it have returned.
   * @param discard takes an answer that comes too late
   * @throws ETIMEDOUT when the area, its root, or as many areas as may be asked at the same time hang
   */
  async ask<T> (root: string, name: string, call: () => Awaitable<T>, discard?: (value: T) => void): Promise<T> {
    if (this.isHanging(root, name) || this.isHanging(root, '') || this.#isFull) throw noAnswer()
    const area = this.#areaOf(root, name)
    if (area.isBusy || this.#running === MAX_DISK_CALLS) await new Promise<void>((resolve, reject) => { this.#waiting.push({ area, start: resolve, refuse: reject }) })
    else this.#occupy(area)
    const answer = startCall(call)
    answer.then(() => { this.#end(area) }, () => { this.#end(area) })
    return await this.#inTime(area, answer, discard)
  }

  /** Gives something back to an area: at once, or when the area answers again. */
  async release (root: string, name: string, call: () => Awaitable<void>): Promise<void> {
    const area = this.#areaOf(root, name)
    if (area.lateCalls > 0) area.postponed.push(call)
    else await this.#inTime(area, startCall(call))
  }

  get #isFull (): boolean {
    return this.#hanging.size >= MAX_DISK_CALLS
  }

  #occupy (area: Area): void {
    area.isBusy = true
    this.#running++
  }

  #end (area: Area): void {
    area.isBusy = false
    this.#running--
    const index = this.#waiting.findIndex((call) => !call.area.isBusy)
    const [next] = index === -1 ? [] : this.#waiting.splice(index, 1)
    if (next !== undefined) {
      // Before anybody else asks.
      this.#occupy(next.area)
      next.start()
    }
    this.#forgetIdle(area)
  }

  #inTime<T> (area: Area, answer: Promise<T>, discard?: (value: T) => void): Promise<T> {
    area.openCalls++
    return new Promise((resolve, reject) => {
      let hasReturned = false
      let isLate = false
      const giveUp = (): void => {
        if (hasReturned) return
        isLate = true
        this.#giveUp(area)
        reject(noAnswer())
      }
      // An answer that came while the whole process stood still is delivered after the timers, and before `setImmediate`.
      const timer = setTimeout(() => { setImmediate(giveUp) }, this.#answerMs)
      const onReturn = (): void => {
        hasReturned = true
        clearTimeout(timer)
        area.openCalls--
        if (isLate) this.#takeBack(area)
        this.#forgetIdle(area)
      }
      answer.then((value) => {
        onReturn()
        if (isLate) discard?.(value)
        else resolve(value)
      }, (error: unknown) => {
        onReturn()
        reject(error)
      })
    })
  }

  #giveUp (area: Area): void {
    if (++area.lateCalls > 1) return
    this.#hanging.add(area)
    const refused = this.#waiting.filter((call) => this.#isFull || call.area === area)
    this.#waiting = this.#waiting.filter((call) => !this.#isFull && call.area !== area)
    for (const call of refused) {
      call.refuse(noAnswer())
      this.#forgetIdle(call.area)
    }
    this.changed.emit({ root: area.root, name: area.name, isAnswering: false })
  }

  #takeBack (area: Area): void {
    if (--area.lateCalls > 0) return
    this.#hanging.delete(area)
    for (const call of area.postponed.splice(0)) startCall(call).catch(() => {})
    this.changed.emit({ root: area.root, name: area.name, isAnswering: true })
  }

  #areaOf (root: string, name: string): Area {
    const key = keyOf(root, name)
    const area = this.#areas.get(key) ?? { root, name, isBusy: false, openCalls: 0, lateCalls: 0, postponed: [] }
    this.#areas.set(key, area)
    return area
  }

  #forgetIdle (area: Area): void {
    if (area.isBusy || area.openCalls > 0 || this.#waiting.some((call) => call.area === area)) return
    this.#areas.delete(keyOf(area.root, area.name))
  }
}

/** The answer of a call, which may fail at once. */
async function startCall<T> (call: () => Awaitable<T>): Promise<T> {
  return await call()
}

/** No path holds a NUL. */
function keyOf (root: string, name: string): string {
  return `${root}\0${name}`
}

function noAnswer (): Error {
  return systemError('ETIMEDOUT', 'the disk does not answer')
}
