import type { CatalogChange } from '../catalog/catalog.ts'
import { Signal } from '../shared/signal.ts'
import type { MergedNames } from './member-lists.ts'
import type { ViewMember } from './view-member.ts'

/** What is known of a name. Names with equal knowledge share one object. */
interface Known {
  readonly owner: ViewMember | undefined
  readonly isShadowing: boolean
}

const known = new WeakMap<ViewMember, Readonly<Record<'alone' | 'shadowing', Known>>>()

interface ViewChangesOptions {
  readonly members: () => readonly ViewMember[]
  readonly names: () => MergedNames
  readonly generation: () => number
}

/**
 * The changes of a view, made from those of its roots while somebody listens. A skill that the view may not have, or that an
 * earlier root of it hides, changes nothing. A view that gets other roots or patterns reports the difference.
 * `View` makes one, for change feeds, the well-known indexes and MCP.
 */
export class ViewChanges {
  readonly #options: ViewChangesOptions
  readonly #changed = new Signal<CatalogChange>(() => {
    this.#known = this.#snapshot()
    this.#stop = this.#follow()
    return () => { this.#stop() }
  })

  readonly #touched = new Signal<Iterable<string> | undefined>(() => {
    this.#stopTouches = this.#followTouches()
    return () => { this.#stopTouches() }
  })

  #stop = (): void => {}
  #stopTouches = (): void => {}
  /** What listeners have been told: the owner of each name, and whether it hides another skill. */
  #known = new Map<string, Known>()

  constructor (options: ViewChangesOptions) {
    this.#options = options
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    return this.#changed.subscribe(listener)
  }

  observe (listener: (names?: Iterable<string>) => void): () => void {
    return this.#touched.subscribe(listener)
  }

  /** The view has new members: reports each skill that came, went, or was replaced by another of the same name. */
  membersChanged (): void {
    if (this.#changed.hasListeners) {
      this.#stop()
      this.#stop = this.#follow()
      this.#report(new Set([...this.#known.keys(), ...this.#options.names().owners.keys()]), new Set())
    }
    if (this.#touched.hasListeners) {
      const stop = this.#stopTouches
      this.#stopTouches = this.#followTouches()
      // Last: without a follower a root keeps no inspections, and watches nothing inside of skills.
      stop()
      this.#touched.emit(undefined)
    }
  }

  #follow (): () => void {
    const stops = this.#options.members().map((member) => member.skills.subscribe(({ added, changed, removed }) => {
      this.#report([...added, ...changed, ...removed].filter((name) => member.allows(name)), new Set([...added, ...changed]), member)
    }))
    return () => { for (const stop of stops) stop() }
  }

  #followTouches (): () => void {
    const stops = this.#options.members().map((member, index) => member.inspections.observe((names) => {
      if (names === undefined) return this.#touched.emit(undefined)
      const { owners } = this.#options.names()
      const own = [...names].filter((name) => owners.get(name) === index)
      if (own.length > 0) this.#touched.emit(own)
    }))
    return () => { for (const stop of stops) stop() }
  }

  /** @param rewritten those of the names whose skill in `by` is another than before */
  #report (names: Iterable<string>, rewritten: ReadonlySet<string>, by?: ViewMember): void {
    const added: string[] = []
    const changed: string[] = []
    const removed: string[] = []
    for (const name of names) {
      const before = this.#known.get(name)
      const now = this.#lookUp(name)
      if (now === undefined) this.#known.delete(name)
      else this.#known.set(name, now)
      if (before === undefined && now === undefined) continue
      if (before === undefined) added.push(name)
      else if (now === undefined) removed.push(name)
      else if (before.owner?.skills !== now.owner?.skills || before.isShadowing !== now.isShadowing || (now.owner === by && rewritten.has(name))) changed.push(name)
    }
    if (added.length + changed.length + removed.length === 0) return
    const { generation } = this.#options
    // Made when it is asked for: it takes the lists of the view, and each of fifty views gets a report of each edit.
    this.#changed.emit({ get generation () { return generation() }, added, changed, removed })
  }

  #snapshot (): Map<string, Known> {
    return new Map([...this.#options.names().owners.keys()].flatMap((name) => {
      const found = this.#lookUp(name)
      return found === undefined ? [] : [[name, found]]
    }))
  }

  #lookUp (name: string): Known | undefined {
    const { owners, shadowing } = this.#options.names()
    const owner = this.#options.members()[owners.get(name) ?? -1]
    if (owner === undefined) return undefined
    let both = known.get(owner)
    if (both === undefined) known.set(owner, both = { alone: { owner, isShadowing: false }, shadowing: { owner, isShadowing: true } })
    return shadowing.has(name) ? both.shadowing : both.alone
  }
}
