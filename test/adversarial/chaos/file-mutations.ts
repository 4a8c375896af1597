import { IGNORE_TEXTS, JUNK } from './hidden-model.ts'
import { nodeAt } from './model-disk.ts'
import { CANARIES, FILES, MAIN_FILES, type World } from './world.ts'

const LINK_TARGETS = [
  'notes.txt', 'docs/guide.md', 'SKILL.md', './docs/../other.txt', 'docs', 'nothing', 'link.md',
  '/outside/canary.txt', '../../outside/canary.txt', '../vault/canary.txt', '.env', '.git/config'
] as const

const MAX_GROWN_BYTES = 1_000_000

export function * saveDocument (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const present = world.namesIn(skill).find((name) => /^skill\.md$/i.test(name))
  const name = present !== undefined && !world.random.oneIn(6) ? present : world.random.pick(MAIN_FILES)
  yield * save(world, `${skill}/${name}`, world.document(skill.split('/').at(-1) ?? ''))
}

export function * saveFile (world: World): Iterable<unknown> {
  const skill = world.skill()
  const file = world.random.pick(FILES)
  if (skill === undefined || !world.makeWay(skill, file)) return
  yield
  yield * save(world, `${skill}/${file}`, world.content(file))
}

/**
 * As editors do: beside and renamed, emptied and written, or written over and cut.
 * @param isWhole whether half a text means something that nobody meant: then it is never written over and cut
 */
function * save (world: World, path: string, bytes: Buffer, isWhole = false): Iterable<unknown> {
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
  } else if (isWhole || random.oneIn(2)) {
    disk.truncate(path, 0)
    yield
    disk.write(path, bytes)
  } else {
    disk.write(path, bytes)
    yield
    disk.truncate(path, bytes.length)
  }
}

/** A file that grows while it is read: each state is the beginning of the next. */
export function * growFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  if (file === undefined) return
  for (let left = 2 + world.random.below(8); left > 0; left--) {
    const node = nodeAt(world.disk.state, file)
    if (node?.kind !== 'file' || node.mode === 0 || node.bytes.length > MAX_GROWN_BYTES) return
    yield world.disk.write(file, Buffer.concat([node.bytes, world.content(file)]))
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

export function * removeFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  if (file !== undefined) yield world.disk.unlink(file)
}

export function * renameFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  if (file === undefined) return
  const to = `${file.slice(0, file.lastIndexOf('/'))}/${world.random.pick(['notes.txt', 'other.txt', 'hard.txt', 'SKILL.md'])}`
  if (to !== file && nodeAt(world.disk.state, to)?.kind !== 'folder') yield world.disk.rename(file, to)
}

export function * renameInnerFolder (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const [from, to] = world.disk.has(`${skill}/docs`) ? [`${skill}/docs`, `${skill}/papers`] : [`${skill}/papers`, `${skill}/docs`]
  if (world.disk.has(from) && !world.disk.has(to)) yield world.disk.rename(from, to)
}

export function * linkFile (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const path = `${skill}/${world.random.pick(['link.md', 'link.md', 'notes.txt', 'SKILL.MD'])}`
  yield * putLink(world, world.random.pick(LINK_TARGETS), path)
}

/** In one step, or with a moment in which there is nothing. */
export function * putLink ({ disk, random }: World, target: string, path: string, beside = `${path.slice(0, path.lastIndexOf('/'))}/.next`): Iterable<unknown> {
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

export function * linkHard (world: World): Iterable<unknown> {
  const file = anyFile(world)
  const to = world.skill()
  if (file === undefined || to === undefined || nodeAt(world.disk.state, file)?.kind !== 'file') return
  if (!world.disk.has(`${to}/hard.txt`)) yield world.disk.hardLink(file, `${to}/hard.txt`)
}

export function * lockFile (world: World): Iterable<unknown> {
  const file = anyFile(world)
  const node = file === undefined ? undefined : nodeAt(world.disk.state, file)
  if (file !== undefined && node?.kind === 'file') yield world.disk.chmod(file, node.mode === 0 ? 0o644 : 0)
}

export function * writeIgnoreFile (world: World): Iterable<unknown> {
  const skill = world.skill()
  if (skill === undefined) return
  const path = `${skill}/.skillignore`
  const isThere = world.disk.has(path)
  if (isThere && world.random.oneIn(3)) yield world.disk.unlink(path)
  else yield * save(world, path, Buffer.from(world.random.pick(Object.keys(IGNORE_TEXTS)) ?? ''), true)
}

/** What an editor or a system leaves behind, or takes away again. */
export function * leaveJunk (world: World): Iterable<unknown> {
  const skill = world.skill()
  const junk = world.random.pick(JUNK)
  if (skill === undefined) return
  const path = `${skill}/${junk}`
  if (world.disk.has(path) && nodeAt(world.disk.state, `${skill}/docs`)?.kind === 'folder') yield world.disk.unlink(path)
  else if (!world.disk.has(path) && world.makeWay(skill, junk)) yield world.makeFile(path, Buffer.from(CANARIES[2]))
}
