import { putLink } from './file-mutations.ts'
import { nodeAt } from './model-disk.ts'
import { LINKED, NAMES, ROOTS, type World } from './world.ts'

const SKILL_LINK_TARGETS = ['alpha', 'beta', 'vault', '../outside/skill', '/outside/skill', 'nothing', '.', '../b.2/alpha', '../linked/one', '/linked/two', '../linked/one', '../linked'] as const

export function * lockSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill !== undefined) yield world.disk.chmod(skill, 0)
}

export function * addSkill (world: World): Iterable<unknown> {
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

export function * removeSkill (world: World): Iterable<unknown> {
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

export function * renameSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const to = `${skill.slice(0, skill.lastIndexOf('/'))}/${world.random.pick(NAMES)}`
  if (!world.disk.has(to)) yield world.disk.rename(skill, to)
}

export function * moveSkill (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const root = world.random.pick(ROOTS)?.path ?? ''
  const to = `${root}/${skill.split('/').at(-1)}`
  if (nodeAt(world.disk.state, root, true)?.kind === 'folder' && !world.disk.has(to)) yield world.disk.rename(skill, to)
}

export function * exchangeSkills (world: World): Iterable<unknown> {
  const [one, other] = [world.skill(), world.skill()]
  if (one === undefined || other === undefined || one === other) return
  const between = world.fresh()
  yield world.disk.rename(one, between)
  yield world.disk.rename(other, one)
  yield world.disk.rename(between, other)
}

export function * replaceByFile (world: World): Iterable<unknown> {
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

export function * linkSkill (world: World): Iterable<unknown> {
  const slot = world.slot()
  if (!world.disk.has(slot.slice(0, slot.lastIndexOf('/')))) return
  if (nodeAt(world.disk.state, slot)?.kind === 'link' && world.random.oneIn(3)) {
    yield world.disk.unlink(slot)
    return
  }
  yield * putLink(world, world.random.pick(SKILL_LINK_TARGETS), slot)
}

/** The oldest trick: a folder that was checked becomes a link to the outside. */
export function * exchangeForLink (world: World): Iterable<unknown> {
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

export function * moveRootAway (world: World): Iterable<unknown> {
  const root = world.random.pick(ROOTS)?.path ?? ''
  const away = world.fresh()
  yield world.disk.rename(root, away)
  if (world.random.oneIn(2)) yield world.makeFile(root, Buffer.from('a file in the place of a root'))
  if (world.disk.has(root)) yield world.disk.unlink(root)
  yield world.disk.rename(away, root)
}

export function * replaceRoot (world: World): Iterable<unknown> {
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

export function * remakeRoot (world: World): Iterable<unknown> {
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

export function * repointRoot (world: World): Iterable<unknown> {
  const node = nodeAt(world.disk.state, '/b')
  const target = node?.kind === 'link' && node.target === 'b.1' ? 'b.2' : 'b.1'
  yield * putLink(world, target, '/b', '/b.next')
}

/** An installer that updates a skill: its folder goes and comes back, or is a link to the outside for a moment. */
export function * exchangeLinked (world: World): Iterable<unknown> {
  const path = world.random.pick(LINKED)
  const node = nodeAt(world.disk.state, path)
  if (node?.kind !== 'folder') return
  if (node.mode === 0) world.disk.chmod(path, 0o755)
  const away = world.fresh()
  world.disk.rename(path, away)
  yield
  if (world.random.oneIn(2)) {
    world.disk.symlink(world.random.pick(['/outside/skill', '../a/vault', 'two']), path)
    yield
    world.disk.unlink(path)
    yield world.disk.rename(away, path)
  } else {
    yield * world.buildSkill(path)
    world.disk.discard(away)
  }
}
