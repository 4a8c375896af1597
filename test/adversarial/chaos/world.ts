import { join } from 'node:path'
import { MirroredDisk } from './mirrored-disk.ts'
import { folderAt, JUNK, nodeAt } from './model-disk.ts'
import type { ModelRoot } from './oracle.ts'

/**
 * No answer may hold one of these: what lies outside the roots, in a sibling skill, and under a hidden name (K8, K19).
 */
export const CANARIES = ['canary-outside-the-roots', 'canary-of-a-sibling', 'canary-in-a-hidden-file'] as const

/** Names that skills come and go under; `vault` stays, and holds a canary. */
export const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'] as const
export const ASKED_NAMES = [...NAMES, 'vault', 'nobody'] as const
export const LABELS = ['label-one', 'label-two'] as const
export const MAIN_FILES = ['SKILL.md', 'SKILL.md', 'SKILL.md', 'SKILL.MD', 'Skill.md'] as const
export const FILES = ['notes.txt', 'other.txt', 'docs/guide.md', 'docs/api.md', 'docs/deep/page.md', 'data.bin',
  'large.bin', 'hard.txt'] as const
export const ASKED_PATHS = [...MAIN_FILES, ...FILES, ...JUNK, '.skillignore', 'link.md', 'docs', 'docs/canary.txt',
  '.env', '.git/config', 'missing.txt'] as const

export const ROOTS: readonly ModelRoot[] = [
  { path: '/a', type: 'project' },
  { path: '/b', type: 'project' },
  { path: '/personal', type: 'personal' }
]

/** Where an installer keeps skills that the roots have links to; links may lead into it. */
export const LINK_TARGET = '/linked'
export const LINKED = [`${LINK_TARGET}/one`, `${LINK_TARGET}/two`] as const

/** Where things are made before they appear and go when they disappear; below no root. */
export const STAGING = '/staging'

/** Lines of frontmatter that cannot be read; name and description come before them, and stay. */
export const DAMAGES = ['argument-hint: [a] [b]', 'metadata: {"a": 1 "b": 2}', 'license: [MIT',
  'compatibility: "open', 'metadata: {\n}}'] as const

const LARGE_BYTES = 300_000
const MEDIUM_BYTES = 40_000
const SMALL_BYTES = 3_000

/** Pseudo-random choices that a seed repeats. */
export interface Random {
  /** A whole number from 0 up to, and without, `bound`. */
  below (bound: number): number
  /** True once in `times`, on average. */
  oneIn (times: number): boolean
  pick<T> (values: readonly [T, ...T[]]): T
  pick<T> (values: readonly T[]): T | undefined
}

/** Mulberry32: 32 bits of state, good enough to choose among faults. */
export function createRandom (seed: number): Random {
  let state = seed >>> 0
  const below = (bound: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * bound)
  }
  return {
    below,
    oneIn: (times) => below(times) === 0,
    pick: (values: readonly unknown[]) => values[below(values.length)] as never
  }
}

/** A disk full of skills that a seed decides on, and what it takes to change it at random. */
export class World {
  readonly disk: MirroredDisk
  readonly random: Random
  #tokens = 0

  /** @param folder an empty one */
  constructor (folder: string, seed: number) {
    this.disk = new MirroredDisk(folder)
    this.random = createRandom(seed)
    for (const path of ['/a', '/b.1', '/b.2', '/personal', STAGING, '/outside', '/outside/skill', '/a/vault',
      LINK_TARGET]) {
      this.disk.makeFolder(path)
    }
    this.disk.symlink('b.1', '/b')
    this.makeFile('/outside/canary.txt', Buffer.from(CANARIES[0]))
    this.makeFile('/outside/skill/SKILL.md', Buffer.from(CANARIES[0]))
    this.makeFile('/a/vault/SKILL.md', this.document('vault'))
    this.makeFile('/a/vault/canary.txt', Buffer.from(CANARIES[1]))
    for (const path of LINKED) Array.from(this.buildSkill(path))
    for (const root of ['/a', '/b', '/b.2', '/personal']) Array.from(this.buildSome(root))
  }

  /** The arguments of a service over the roots. */
  get args (): readonly string[] {
    const path = (place: string) => join(this.disk.folder, place)
    return [path('a'), path('b'), '--personal', path('personal'), '--allow-links', path(LINK_TARGET)]
  }

  /** A place in a root where a skill may be. */
  slot (): string {
    return `${this.random.pick(ROOTS)?.path}/${this.random.pick(NAMES)}`
  }

  /** A skill's folder, made by us and open to us; undefined where there is none. */
  skill (): string | undefined {
    const path = this.random.oneIn(8) ? this.random.pick(LINKED) : this.slot()
    const node = nodeAt(this.disk.state, path)
    if (node?.kind !== 'folder') return undefined
    if (node.mode === 0) this.disk.chmod(path, 0o755)
    return path
  }

  namesIn (path: string): readonly string[] {
    return [...folderAt(this.disk.state, path)?.entries.keys() ?? []]
  }

  /** A name in the staging folder that nothing has. */
  fresh (): string {
    return `${STAGING}/${++this.#tokens}`
  }

  /** A main file that no other one is like: mostly a valid one. */
  document (name: string): Buffer {
    const token = `t${++this.#tokens}`
    const body = this.#fill(token)
    switch (this.random.below(10)) {
      case 0: return body
      case 1: return Buffer.concat([Buffer.from([0xe9]), body])
      case 2: return Buffer.from(
        `---\nname: ${this.random.pick(LABELS)}\ndescription: label ${token}\n---\n${body.toString()}`)
      case 3: return Buffer.from(
        `---\nname: ${name}\ndescription: damaged ${token}\n${this.random.pick(DAMAGES)}\n---\n${body.toString()}`)
      default: return Buffer.from(`---\nname: ${name}\ndescription: about ${token}\n---\n${body.toString()}`)
    }
  }

  /** The content of a file, for its name; no other one is like it. */
  content (path: string): Buffer {
    const token = `t${++this.#tokens}`
    if (path.endsWith('large.bin')) return this.#fill(token, LARGE_BYTES + this.random.below(LARGE_BYTES))
    if (path.endsWith('data.bin')) return Buffer.concat([Buffer.from([0]), this.#fill(token)])
    return this.#fill(token)
  }

  #fill (token: string, size = this.random.below(this.random.oneIn(8) ? MEDIUM_BYTES : SMALL_BYTES)): Buffer {
    return Buffer.alloc(token.length + 1 + size, `${token}\n`)
  }

  makeFile (path: string, bytes: Buffer): void {
    this.disk.makeFile(path)
    this.disk.write(path, bytes)
  }

  /** Makes a skill file by file; what it yields are the moments in between. */
  * buildSkill (path: string): Generator<string> {
    this.disk.makeFolder(path)
    yield path
    const name = path.split('/').at(-1) ?? ''
    if (!this.random.oneIn(8)) this.makeFile(`${path}/${this.random.pick(MAIN_FILES)}`, this.document(name))
    yield path
    for (const file of FILES) {
      if (!this.random.oneIn(3)) continue
      this.makeWay(path, file)
      this.makeFile(`${path}/${file}`, this.content(file))
      yield path
    }
    if (this.random.oneIn(2)) return
    this.makeFile(`${path}/.env`, Buffer.from(CANARIES[2]))
    this.disk.makeFolder(`${path}/.git`)
    this.makeFile(`${path}/.git/config`, Buffer.from(CANARIES[2]))
  }

  /** Half of the skills that a root may have. */
  * buildSome (root: string): Generator<unknown> {
    for (const name of NAMES) if (this.random.oneIn(2)) yield * this.buildSkill(`${root}/${name}`)
  }

  /** The folders that a file of a skill lies in. False when something else is in their place. */
  makeWay (skill: string, file: string): boolean {
    let path = skill
    for (const name of file.split('/').slice(0, -1)) {
      path = `${path}/${name}`
      if (!this.disk.has(path)) this.disk.makeFolder(path)
      if (nodeAt(this.disk.state, path)?.kind !== 'folder') return false
    }
    return true
  }
}
