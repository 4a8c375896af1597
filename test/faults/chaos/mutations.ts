import { nodeAt } from './model-disk.ts'
import { FILES, MAIN_FILES, NAMES, ROOTS, type World } from './world.ts'

/**
 * One change as a person or a program makes it: some system calls, and between them moments in which anybody may look.
 * One that finds nothing to change does nothing.
 */
export type Mutation = (world: World) => Iterable<unknown>

type Weighted = readonly [weight: number, mutation: Mutation]

const LINK_TARGETS = [
  'notes.txt', 'docs/guide.md', 'SKILL.md', './docs/../other.txt', 'docs', 'nothing', 'link.md',
  '/outside/canary.txt', '../../outside/canary.txt', '../vault/canary.txt', '.env', '.git/config'
] as const

const SKILL_LINK_TARGETS = ['alpha', 'beta', 'vault', '../outside/skill', '/outside/skill', 'nothing', '.', '../b.2/alpha'] as const

const MUTATIONS: readonly Weighted[] = [
  [12, saveDocument],
  [14, saveFile],
  [4, removeFile],
  [4, renameFile],
  [3, renameInnerFolder],
  [5, linkFile],
  [3, linkHard],
  [3, lockFile],
  [2, lockSkill],
  [6, addSkill],
  [4, removeSkill],
  [4, renameSkill],
  [4, moveSkill],
  [2, exchangeSkills],
  [3, replaceByFile],
  [3, linkSkill],
  [2, exchangeForLink],
  [1, moveRootAway],
  [1, replaceRoot],
  [1, remakeRoot],
  [3, repointRoot]
]

const ALL_WEIGHTS = MUTATIONS.reduce((sum, [weight]) => sum + weight, 0)

export function chooseMutation ({ random }: World): Mutation {
  let place = random.below(ALL_WEIGHTS)
  for (const [weight, mutation] of MUTATIONS) {
    place -= weight
    if (place < 0) return mutation
  }
  throw new RangeError('the weights do not add up')
}

function * saveDocument (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const present = world.namesIn(skill).find((name) => /^skill\.md$/i.test(name))
  const name = present !== undefined && !world.random.oneIn(6) ? present : world.random.pick(MAIN_FILES)
  yield * save(world, `${skill}/${name}`, world.document(skill.split('/').at(-1) ?? ''))
}

function * saveFile (world: World): Iterable<unknown> {
  const skill = world.skill()
  const file = world.random.pick(FILES)
  if (skill === undefined || !world.makeWay(skill, file)) return
  yield
  yield * save(world, `${skill}/${file}`, world.content(file))
}

/** As editors do: beside and renamed, emptied and written, or written over and cut. */
function * save (world: World, path: string, bytes: Buffer): Iterable<unknown> {
  const { disk, random } = world
  const node = nodeAt(disk.state, path)
  if (node?.kind === 'file' && node.mode === 0) disk.chmod(path, 0o644)
  if (node?.kind !== 'file' || random.oneIn(2)) {
    const beside = random.oneIn(2) ? `${path}.tmp` : world.fresh()
    if (disk.has(beside)) disk.unlink(beside)
    disk.makeFile(beside)
    yield
    disk.write(beside, bytes)
    yield
    disk.rename(beside, path)
  } else if (random.oneIn(2)) {
    disk.truncate(path, 0)
    yield
    disk.write(path, bytes)
  } else {
    disk.write(path, bytes)
    yield
    disk.truncate(path, bytes.length)
  }
}

/** A file or link in a skill; undefined where there is none. */
function anyFile (world: World): string | undefined {
  const skill = world.skill()
  if (skill === undefined) return undefined
  const path = `${skill}/${world.random.pick([...FILES, ...MAIN_FILES, 'link.md'])}`
  const node = nodeAt(world.disk.state, path)
  // Behind a link the way leads into another skill, or out of all.
  const isOwn = !path.includes('/docs/') || nodeAt(world.disk.state, `${skill}/docs`)?.kind === 'folder'
  return node !== undefined && node.kind !== 'folder' && isOwn ? path : undefined
}

function * removeFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  if (file !== undefined) yield world.disk.unlink(file)
}

function * renameFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  if (file === undefined) return
  const to = `${file.slice(0, file.lastIndexOf('/'))}/${world.random.pick(['notes.txt', 'other.txt', 'hard.txt', 'SKILL.md'])}`
  if (to !== file && nodeAt(world.disk.state, to)?.kind !== 'folder') yield world.disk.rename(file, to)
}

function * renameInnerFolder (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const [from, to] = world.disk.has(`${skill}/docs`) ? [`${skill}/docs`, `${skill}/papers`] : [`${skill}/papers`, `${skill}/docs`]
  if (world.disk.has(from) && !world.disk.has(to)) yield world.disk.rename(from, to)
}

function * linkFile (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const path = `${skill}/${world.random.pick(['link.md', 'link.md', 'notes.txt', 'SKILL.MD'])}`
  yield * putLink(world, world.random.pick(LINK_TARGETS), path)
}

/** In one step, or with a moment in which there is nothing. */
function * putLink ({ disk, random }: World, target: string, path: string, beside = `${path.slice(0, path.lastIndexOf('/'))}/.next`): Iterable<unknown> {
  const node = nodeAt(disk.state, path)
  if (node?.kind === 'folder') return
  if (random.oneIn(2)) {
    if (disk.has(beside)) disk.unlink(beside)
    disk.symlink(target, beside)
    yield
    disk.rename(beside, path)
  } else {
    if (node !== undefined) disk.unlink(path)
    yield
    disk.symlink(target, path)
  }
}

function * linkHard (world: World): Iterable<unknown> {
  const file = anyFile(world)
  const to = world.skill()
  if (file === undefined || to === undefined || nodeAt(world.disk.state, file)?.kind !== 'file') return
  if (!world.disk.has(`${to}/hard.txt`)) yield world.disk.hardLink(file, `${to}/hard.txt`)
}

function * lockFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  const node = file === undefined ? undefined : nodeAt(world.disk.state, file)
  if (file !== undefined && node?.kind === 'file') yield world.disk.chmod(file, node.mode === 0 ? 0o644 : 0)
}

function * lockSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill !== undefined) yield world.disk.chmod(skill, 0)
}

function * addSkill (world: World): Iterable<unknown> {
  const slot = world.slot()
  if (world.disk.has(slot) || !world.disk.has(slot.slice(0, slot.lastIndexOf('/')))) return
  if (world.random.oneIn(2)) {
    yield * world.buildSkill(slot)
    return
  }
  yield * moveIn(world, slot)
}

/** A skill that appears complete. */
function * moveIn (world: World, slot: string): Iterable<unknown> {
  const folder = world.fresh()
  world.disk.makeFolder(folder)
  const place = `${folder}/${slot.split('/').at(-1)}`
  yield * world.buildSkill(place)
  world.disk.rename(place, slot)
  yield
  world.disk.discard(folder)
}

function * removeSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  if (world.random.oneIn(2)) yield * moveOut(world, skill)
  else yield * removeAll(world, skill)
}

function * moveOut (world: World, path: string): Iterable<unknown> {
  const away = world.fresh()
  world.disk.rename(path, away)
  yield
  world.disk.discard(away)
}

/** Entry by entry, as `rm -r` does. */
function * removeAll (world: World, path: string): Iterable<unknown> {
  for (const name of world.namesIn(path)) {
    const entry = `${path}/${name}`
    if (nodeAt(world.disk.state, entry)?.kind === 'folder') yield * removeAll(world, entry)
    else yield world.disk.unlink(entry)
  }
  yield world.disk.removeFolder(path)
}

function * renameSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const to = `${skill.slice(0, skill.lastIndexOf('/'))}/${world.random.pick(NAMES)}`
  if (!world.disk.has(to)) yield world.disk.rename(skill, to)
}

function * moveSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const root = world.random.pick(ROOTS)?.path ?? ''
  const to = `${root}/${skill.split('/').at(-1)}`
  if (nodeAt(world.disk.state, root, true)?.kind === 'folder' && !world.disk.has(to)) yield world.disk.rename(skill, to)
}

function * exchangeSkills (world: World): Iterable<unknown> {
  const [one, other] = [world.skill(), world.skill()]
  if (one === undefined || other === undefined || one === other) return
  const between = world.fresh()
  yield world.disk.rename(one, between)
  yield world.disk.rename(other, one)
  yield world.disk.rename(between, other)
}

function * replaceByFile (world: World): Iterable<unknown> {
  const slot = world.slot()
  const node = nodeAt(world.disk.state, slot)
  if (node?.kind === 'file') {
    world.disk.unlink(slot)
    yield
    yield * moveIn(world, slot)
    return
  }
  if (node === undefined || node.kind === 'link') return
  if (node.mode === 0) world.disk.chmod(slot, 0o755)
  const away = world.fresh()
  world.disk.rename(slot, away)
  yield
  world.makeFile(slot, Buffer.from('not a folder'))
  yield
  if (world.random.oneIn(2)) {
    world.disk.unlink(slot)
    yield world.disk.rename(away, slot)
  } else world.disk.discard(away)
}

function * linkSkill (world: World): Iterable<unknown> {
  const slot = world.slot()
  if (!world.disk.has(slot.slice(0, slot.lastIndexOf('/')))) return
  if (nodeAt(world.disk.state, slot)?.kind === 'link' && world.random.oneIn(3)) {
    yield world.disk.unlink(slot)
    return
  }
  yield * putLink(world, world.random.pick(SKILL_LINK_TARGETS), slot)
}

/** The oldest trick: a folder that was checked becomes a link to the outside. */
function * exchangeForLink (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined || nodeAt(world.disk.state, `${skill}/docs`)?.kind !== 'folder') return
  const away = world.fresh()
  for (const target of ['../vault', '/outside', '../vault']) {
    world.disk.rename(`${skill}/docs`, away)
    world.disk.symlink(target, `${skill}/docs`)
    yield
    world.disk.unlink(`${skill}/docs`)
    world.disk.rename(away, `${skill}/docs`)
    yield
  }
}

function * moveRootAway (world: World): Iterable<unknown> {
  const root = world.random.pick(ROOTS)?.path ?? ''
  const away = world.fresh()
  yield world.disk.rename(root, away)
  if (world.random.oneIn(2)) yield world.makeFile(root, Buffer.from('a file in the place of a root'))
  if (world.disk.has(root)) yield world.disk.unlink(root)
  yield world.disk.rename(away, root)
}

function * replaceRoot (world: World): Iterable<unknown> {
  const root = world.random.pick(['/personal', '/b.1', '/b.2'])
  const next = world.fresh()
  world.disk.makeFolder(next)
  for (const name of NAMES) if (world.random.oneIn(2)) yield * world.buildSkill(`${next}/${name}`)
  const away = world.fresh()
  world.disk.rename(root, away)
  if (world.random.oneIn(2)) yield
  world.disk.rename(next, root)
  yield
  world.disk.discard(away)
}

function * remakeRoot (world: World): Iterable<unknown> {
  const root = world.random.pick(['/personal', '/b.1', '/b.2'])
  for (const name of world.namesIn(root)) {
    const path = `${root}/${name}`
    const node = nodeAt(world.disk.state, path)
    if (node?.kind === 'folder' && node.mode === 0) world.disk.chmod(path, 0o755)
  }
  yield * removeAll(world, root)
  yield world.disk.makeFolder(root)
  for (const name of NAMES) if (world.random.oneIn(2)) yield * world.buildSkill(`${root}/${name}`)
}

function * repointRoot (world: World): Iterable<unknown> {
  const node = nodeAt(world.disk.state, '/b')
  const target = node?.kind === 'link' && node.target === 'b.1' ? 'b.2' : 'b.1'
  yield * putLink(world, target, '/b', '/b.next')
}
