import { pathFrom } from '../paths.ts'

/**
 * Which links in a root hang together. All that lead into one allowed folder are one area with it: one disk that does not answer
 * is asked one thing, however many links lead there. Another link is an area of its own, with the folder that it leads to.
 */
export class LinkedAreas {
  /** Allowed folders as configured, by each path that they are known by. */
  readonly #allowed: Map<string, string>
  /** Where the links lead, by name. */
  readonly #targets = new Map<string, string>()

  /** @param allowed absolute paths of the folders that links may lead into */
  constructor (allowed: readonly string[]) {
    this.#allowed = new Map(allowed.map((folder) => [folder, folder]))
  }

  /** An allowed folder is found under this path too. */
  addRealPath (folder: string, realPath: string): void {
    if (this.#allowed.get(folder) === folder) this.#allowed.set(realPath, folder)
  }

  tie (name: string, target: string): void {
    this.#targets.set(name, target)
  }

  untie (name: string): void {
    this.#targets.delete(name)
  }

  /** Forgets all links but these. */
  keep (names: { has (name: string): boolean }): void {
    for (const name of this.#targets.keys()) if (!names.has(name)) this.untie(name)
  }

  /** The allowed folder that a path lies in. */
  allowedFolderOf (path: string): string | undefined {
    for (const [known, folder] of this.#allowed) if (pathFrom(known, path) !== undefined) return folder
    return undefined
  }

  /** The area of an entry of the root. */
  areaOfEntry (name: string): string {
    const target = this.#targets.get(name)
    return (target === undefined ? undefined : this.allowedFolderOf(target)) ?? name
  }

  /** The area of a path outside of the root; '' for one that no link leads to. Of several links to one folder the first counts for all. */
  areaOf (path: string): string {
    const allowed = this.allowedFolderOf(path)
    if (allowed !== undefined) return allowed
    for (const [name, target] of this.#targets) if (pathFrom(target, path) !== undefined) return name
    return ''
  }

  /** Names of the entries of the root that hang with an area. */
  namesIn (area: string): readonly string[] {
    if (!this.#allowed.has(area)) return [area]
    return [...this.#targets.keys()].filter((name) => this.areaOfEntry(name) === area)
  }
}
