import type { Awaitable } from '../../ground/async.ts'
import { DISK_ANSWER_MS, MAX_DISK_CALLS } from '../../ground/limits.ts'
import { Signal } from '../../ground/signal.ts'

/** What answers or hangs as one: a folder of a root with all that is in it, or the root itself, with the name ''. */
export interface DiskArea {
  /** Path of the root, as configured. */
  readonly root: string
  readonly name: string
}

interface Area extends DiskArea {
  isBusy: boolean
  /** Calls that were given up and have not returned. */
  lateCalls: number
  /** Calls for the time when the area answers again. */
  readonly postponed: Array<() => unknown>
}

interface WaitingCall {
  readonly area: Area
  readonly start: () => void
  readonly refuse: () => void
}

/**
 * Keeps a disk that hangs from holding up the others, for roots on network disks. A call to a dead mount never returns and keeps
 * one of the four threads of the process. So each area is asked one thing at a time, and all areas together leave one thread
 * free. A call that takes longer than `answerMs` fails with ETIMEDOUT. Each other call to that area then fails at once, until
 * the first has returned. Calls that are answered synchronously stay synchronous.
 */
export class DiskGuard {
  /** Emits an area that has ceased to answer, or answers again. */
  readonly changed = new Signal<DiskArea & { readonly isAnswering: boolean }>()
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
  ask<T> (root: string, name: string, call: () => Awaitable<T>, discard?: (value: T) => void): Awaitable<T> {
    if (this.isHanging(root, name) || this.isHanging(root, '') || this.#isFull) throw noAnswer()
    const area = this.#areaOf(root, name)
    if (!area.isBusy && this.#running < MAX_DISK_CALLS) return this.#start(area, call, discard)
    return new Promise((resolve, reject) => {
      const start = async (): Promise<T> => await this.#start(area, call, discard)
      this.#waiting.push({ area, start: () => { start().then(resolve, reject) }, refuse: () => { reject(noAnswer()) } })
    })
  }

  /** Gives something back to an area: at once, or when the area answers again. */
  release (root: string, name: string, call: () => Awaitable<void>): Awaitable<void> {
    if (this.isHanging(root, name)) {
      this.#areaOf(root, name).postponed.push(call)
      return undefined
    }
    const answer = call()
    return answer instanceof Promise ? this.#inTime(this.#areaOf(root, name), answer) : answer
  }

  get #isFull (): boolean {
    return this.#hanging.size >= MAX_DISK_CALLS
  }

  #start<T> (area: Area, call: () => Awaitable<T>, discard?: (value: T) => void): Awaitable<T> {
    area.isBusy = true
    this.#running++
    const end = (): void => { this.#end(area) }
    let answer: Awaitable<T> | undefined
    try {
      answer = call()
    } finally {
      if (!(answer instanceof Promise)) end()
    }
    if (!(answer instanceof Promise)) return answer
    const inTime = this.#inTime(area, answer, discard)
    answer.then(end, end)
    return inTime
  }

  #end (area: Area): void {
    area.isBusy = false
    this.#running--
    while (this.#running < MAX_DISK_CALLS) {
      const index = this.#waiting.findIndex((call) => !call.area.isBusy)
      if (index === -1) break
      this.#waiting.splice(index, 1)[0]?.start()
    }
    this.#forgetIdle(area)
  }

  #inTime<T> (area: Area, answer: Promise<T>, discard?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        this.#giveUp(area)
        reject(noAnswer())
      }, this.#answerMs)
      const onReturn = (): void => {
        clearTimeout(timer)
        if (isLate) this.#takeBack(area)
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
      call.refuse()
      this.#forgetIdle(call.area)
    }
    this.changed.emit({ root: area.root, name: area.name, isAnswering: false })
  }

  #takeBack (area: Area): void {
    if (--area.lateCalls > 0) return
    this.#hanging.delete(area)
    for (const act of area.postponed) act()
    this.#forgetIdle(area)
    this.changed.emit({ root: area.root, name: area.name, isAnswering: true })
  }

  #areaOf (root: string, name: string): Area {
    const key = keyOf(root, name)
    const area = this.#areas.get(key) ?? { root, name, isBusy: false, lateCalls: 0, postponed: [] }
    this.#areas.set(key, area)
    return area
  }

  #forgetIdle (area: Area): void {
    if (area.isBusy || area.lateCalls > 0 || this.#waiting.some((call) => call.area === area)) return
    this.#areas.delete(keyOf(area.root, area.name))
  }
}

/** No path holds a NUL. */
function keyOf (root: string, name: string): string {
  return `${root}\0${name}`
}

function noAnswer (): Error {
  return Object.assign(new Error('ETIMEDOUT: the disk does not answer'), { code: 'ETIMEDOUT' })
}
