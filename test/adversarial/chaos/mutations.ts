import { IGNORE_TEXTS, JUNK, type Node, nodeAt } from './model-disk.ts'
import { CANARIES, FILES, LINKED, MAIN_FILES, NAMES, ROOTS, type World } from './world.ts'

const LINK_TARGETS = [
  'notes.txt', 'docs/guide.md', 'SKILL.md', './docs/../other.txt', 'docs', 'nothing', 'link.md',
  '/outside/canary.txt', '../../outside/canary.txt', '../vault/canary.txt', '.env', '.git/config'
] as const
const SKILL_LINK_TARGETS = [
  'alpha', 'beta', 'vault', '../outside/skill', '/outside/skill', 'nothing', '.', '../b.2/alpha', '../linked/one',
  '/linked/two', '../linked/one', '../linked'
] as const
const REPLACED_ROOTS = ['/personal', '/b.1', '/b.2'] as const
const MAX_GROWN_BYTES = 1_000_000

/** System calls, and between them moments in which anybody may look. One that finds nothing to change does nothing. */
type Moments = Iterable<unknown>

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/'))
const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

/** Changes of a skill whose folder is there and open. */
const OF_SKILLS: ReadonlyArray<readonly [weight: number, mutate: (world: World, skill: string) => Moments]> = [
  [12, function * saveDocument (world, skill) {
    const present = world.namesIn(skill).find((name) => /^skill\.md$/i.test(name))
    const name = present !== undefined && !world.random.oneIn(6) ? present : world.random.pick(MAIN_FILES)
    yield * save(world, `${skill}/${name}`, world.document(nameOf(skill)))
  }],
  [14, function * saveFile (world, skill) {
    const file = world.random.pick(FILES)
    if (!world.makeWay(skill, file)) return
    yield
    yield * save(world, `${skill}/${file}`, world.content(file))
  }],
  [3, function * renameInnerFolder ({ disk }, skill) {
    const names = disk.has(`${skill}/docs`) ? ['docs', 'papers'] : ['papers', 'docs']
    const [from = '', to = ''] = names.map((name) => `${skill}/${name}`)
    if (disk.has(from) && !disk.has(to)) yield disk.rename(from, to)
  }],
  [5, function * linkFile (world, skill) {
    const path = `${skill}/${world.random.pick(['link.md', 'link.md', 'notes.txt', 'SKILL.MD'])}`
    yield * putLink(world, world.random.pick(LINK_TARGETS), path)
  }],
  [5, function * writeIgnoreFile (world, skill) {
    const path = `${skill}/.skillignore`
    if (world.disk.has(path) && world.random.oneIn(3)) yield world.disk.unlink(path)
    else yield * save(world, path, Buffer.from(world.random.pick(Object.keys(IGNORE_TEXTS)) ?? ''), true)
  }],
  [4, function * leaveJunk (world, skill) {
    const junk = world.random.pick(JUNK)
    const path = `${skill}/${junk}`
    if (!world.disk.has(path) && world.makeWay(skill, junk)) yield world.makeFile(path, Buffer.from(CANARIES[2]))
    else if (world.disk.has(path) && nodeAt(world.disk.state,
      `${skill}/docs`)?.kind === 'folder') yield world.disk.unlink(path)
  }],
  [2, function * lockSkill ({ disk }, skill) { yield disk.chmod(skill, 0) }],
  [4, function * removeSkill (world, skill) {
    if (world.random.oneIn(2)) yield * moveOut(world, skill)
    else yield * removeAll(world, skill)
  }],
  [4, function * renameSkill ({ disk, random }, skill) {
    const to = `${parentOf(skill)}/${random.pick(NAMES)}`
    if (!disk.has(to)) yield disk.rename(skill, to)
  }],
  [4, function * moveSkill ({ disk, random }, skill) {
    const root = random.pick(ROOTS)?.path ?? ''
    const to = `${root}/${nameOf(skill)}`
    if (nodeAt(disk.state, root, true)?.kind === 'folder' && !disk.has(to)) yield disk.rename(skill, to)
  }],
  [2, function * exchangeSkills (world, skill) {
    const other = world.skill()
    if (other === undefined || other === skill) return
    const between = world.fresh()
    yield world.disk.rename(skill, between)
    yield world.disk.rename(other, skill)
    yield world.disk.rename(between, other)
  }],
  // The oldest trick: a folder that was checked becomes a link to the outside.
  [2, function * exchangeForLink (world, skill) {
    if (nodeAt(world.disk.state, `${skill}/docs`)?.kind !== 'folder') return
    const away = world.fresh()
    for (const target of ['../vault', '/outside', '../vault']) {
      world.disk.rename(`${skill}/docs`, away)
      world.disk.symlink(target, `${skill}/docs`)
      yield
      world.disk.unlink(`${skill}/docs`)
      world.disk.rename(away, `${skill}/docs`)
      yield
    }
  }]
]

/** Changes of a file or a link in a skill. */
const OF_FILES: ReadonlyArray<readonly [weight: number, mutate: (world: World, file: string,
  node: Node) => Moments]> = [
  // Each state is the beginning of the next.
    [5, function * grow (world, file) {
      for (let left = 2 + world.random.below(8); left > 0; left--) {
        const node = nodeAt(world.disk.state, file)
        if (node?.kind !== 'file' || node.mode === 0 || node.bytes.length > MAX_GROWN_BYTES) return
        yield world.disk.write(file, Buffer.concat([node.bytes, world.content(file)]))
      }
    }],
    [4, function * remove ({ disk }, file) { yield disk.unlink(file) }],
    [4, function * rename ({ disk, random }, file) {
      const to = `${parentOf(file)}/${random.pick(['notes.txt', 'other.txt', 'hard.txt', 'SKILL.md'])}`
      if (to !== file && nodeAt(disk.state, to)?.kind !== 'folder') yield disk.rename(file, to)
    }],
    [3, function * linkHard (world, file, node) {
      const to = world.skill()
      if (to !== undefined && node.kind === 'file' && !world.disk.has(`${to}/hard.txt`)) {
        yield world.disk.hardLink(file, `${to}/hard.txt`)
      }
    }],
    [3, function * lock ({ disk }, file, node) {
      if (node.kind === 'file') yield disk.chmod(file, node.mode === 0 ? 0o644 : 0)
    }]
  ]

/** Changes of a place where a skill may be, of roots, and of what links lead to. */
const OF_ROOTS: ReadonlyArray<readonly [weight: number, mutate: (world: World) => Moments]> = [
  [6, function * addSkill (world) {
    const slot = world.slot()
    if (world.disk.has(slot) || !world.disk.has(parentOf(slot))) return
    yield * world.random.oneIn(2) ? world.buildSkill(slot) : moveIn(world, slot)
  }],
  [3, function * replaceByFile (world) {
    const { disk, random } = world
    const slot = world.slot()
    const node = nodeAt(disk.state, slot)
    if (node?.kind === 'file') {
      yield disk.unlink(slot)
      yield * moveIn(world, slot)
    } else if (node?.kind === 'folder') {
      if (node.mode === 0) disk.chmod(slot, 0o755)
      const away = world.fresh()
      yield disk.rename(slot, away)
      yield world.makeFile(slot, Buffer.from('not a folder'))
      if (random.oneIn(2)) {
        disk.unlink(slot)
        yield disk.rename(away, slot)
      } else disk.discard(away)
    }
  }],
  [3, function * linkSkill (world) {
    const slot = world.slot()
    if (!world.disk.has(parentOf(slot))) return
    if (nodeAt(world.disk.state, slot)?.kind === 'link' && world.random.oneIn(3)) yield world.disk.unlink(slot)
    else yield * putLink(world, world.random.pick(SKILL_LINK_TARGETS), slot)
  }],
  [1, function * moveRootAway (world) {
    const root = world.random.pick(ROOTS)?.path ?? ''
    const away = world.fresh()
    yield world.disk.rename(root, away)
    if (world.random.oneIn(2)) yield world.makeFile(root, Buffer.from('a file in the place of a root'))
    if (world.disk.has(root)) yield world.disk.unlink(root)
    yield world.disk.rename(away, root)
  }],
  [1, function * replaceRoot (world) {
    const root = world.random.pick(REPLACED_ROOTS)
    const [next, away] = [world.fresh(), world.fresh()]
    world.disk.makeFolder(next)
    yield * world.buildSome(next)
    world.disk.rename(root, away)
    if (world.random.oneIn(2)) yield
    yield world.disk.rename(next, root)
    world.disk.discard(away)
  }],
  [1, function * remakeRoot (world) {
    const root = world.random.pick(REPLACED_ROOTS)
    for (const name of world.namesIn(root)) {
      const node = nodeAt(world.disk.state, `${root}/${name}`)
      if (node?.kind === 'folder' && node.mode === 0) world.disk.chmod(`${root}/${name}`, 0o755)
    }
    yield * removeAll(world, root)
    yield world.disk.makeFolder(root)
    yield * world.buildSome(root)
  }],
  // An installer that updates a skill: its folder goes and comes back, or is a link to the outside for a moment.
  [3, function * exchangeLinked (world) {
    const { disk, random } = world
    const path = random.pick(LINKED)
    const node = nodeAt(disk.state, path)
    if (node?.kind !== 'folder') return
    if (node.mode === 0) disk.chmod(path, 0o755)
    const away = world.fresh()
    yield disk.rename(path, away)
    if (random.oneIn(2)) {
      yield disk.symlink(random.pick(['/outside/skill', '../a/vault', 'two']), path)
      yield disk.unlink(path)
      yield disk.rename(away, path)
    } else {
      yield * world.buildSkill(path)
      disk.discard(away)
    }
  }],
  [3, function * repointRoot (world) {
    const node = nodeAt(world.disk.state, '/b')
    yield * putLink(world, node?.kind === 'link' && node.target === 'b.1' ? 'b.2' : 'b.1', '/b', '/b.next')
  }]
]

const WEIGHTED: ReadonlyArray<readonly [weight: number, mutate: (world: World) => Moments]> = [
  ...OF_SKILLS.map(([weight, mutate]) => [weight, (world: World) => {
    const skill = world.skill()
    return skill === undefined ? [] : mutate(world, skill)
  }] as const),
  ...OF_FILES.map(([weight, mutate]) => [weight, (world: World) => {
    const skill = world.skill()
    const file = `${skill}/${world.random.pick([...FILES, ...MAIN_FILES, 'link.md'])}`
    const node = nodeAt(world.disk.state, file)
    // Behind a link the way leads into another skill, or out of all.
    const isOwn = !file.includes('/docs/') || nodeAt(world.disk.state, `${skill}/docs`)?.kind === 'folder'
    return node === undefined || node.kind === 'folder' || !isOwn ? [] : mutate(world, file, node)
  }] as const),
  ...OF_ROOTS
]
const CHOICES = WEIGHTED.flatMap(([weight, mutate]) => Array<typeof mutate>(weight).fill(mutate))

/** One change as a person or a program makes it. */
export function mutate (world: World): Moments {
  return world.random.pick(CHOICES)?.(world) ?? []
}

/**
 * As editors do: next to it and renamed, emptied and written, or written over and cut.
 * @param isWhole whether half a text means something that nobody meant: then it is never written over and cut
 */
function * save (world: World, path: string, bytes: Buffer, isWhole = false): Moments {
  const { disk, random } = world
  const node = nodeAt(disk.state, path)
  if (node?.kind === 'file' && node.mode === 0) disk.chmod(path, 0o644)
  if (node?.kind !== 'file' || random.oneIn(2)) {
    const neighbour = random.oneIn(2) ? `${path}.tmp` : world.fresh()
    if (disk.has(neighbour)) disk.unlink(neighbour)
    yield disk.makeFile(neighbour)
    yield disk.write(neighbour, bytes)
    disk.rename(neighbour, path)
  } else if (isWhole || random.oneIn(2)) {
    yield disk.truncate(path, 0)
    disk.write(path, bytes)
  } else {
    yield disk.write(path, bytes)
    disk.truncate(path, bytes.length)
  }
}

/** In one step, or with a moment in which there is nothing. */
function * putLink ({ disk, random }: World, target: string, path: string,
  neighbour = `${parentOf(path)}/.next`): Moments {
  const node = nodeAt(disk.state, path)
  if (node?.kind === 'folder') return
  if (random.oneIn(2)) {
    if (disk.has(neighbour)) disk.unlink(neighbour)
    yield disk.symlink(target, neighbour)
    disk.rename(neighbour, path)
  } else {
    if (node !== undefined) yield disk.unlink(path)
    disk.symlink(target, path)
  }
}

/** A skill that appears complete. */
function * moveIn (world: World, slot: string): Moments {
  const folder = world.fresh()
  world.disk.makeFolder(folder)
  const place = `${folder}/${nameOf(slot)}`
  yield * world.buildSkill(place)
  yield world.disk.rename(place, slot)
  world.disk.discard(folder)
}

function * moveOut (world: World, path: string): Moments {
  const away = world.fresh()
  yield world.disk.rename(path, away)
  world.disk.discard(away)
}

/** Entry by entry, as `rm -r` does. */
function * removeAll (world: World, path: string): Moments {
  for (const name of world.namesIn(path)) {
    const entry = `${path}/${name}`
    if (nodeAt(world.disk.state, entry)?.kind === 'folder') yield * removeAll(world, entry)
    else yield world.disk.unlink(entry)
  }
  yield world.disk.removeFolder(path)
}
