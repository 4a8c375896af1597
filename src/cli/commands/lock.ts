import { basename, resolve } from 'node:path'
import { counted } from '../../core/shared/text.ts'
import { replaceFile, whyUnwritable } from '../../config/files/files.ts'
import type { RootOptions } from '../../core/roots/root.ts'
import type { SkillSource } from '../../core/service.ts'
import type { Lock } from '../../trust/lock-file.ts'
import type { OnProgress } from '../../trust/verify.ts'
import type { SkillManagerOptions } from '../../core/skill-manager.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { namingSkipped, readLinkTargets, withRoots } from '../folders.ts'
import { showing } from '../progress.ts'

const DEFAULT_FOLDER = './skills'
const DEFAULT_FILE = 'skills.lock'

interface ReadOptions extends Pick<SkillManagerOptions, 'linkTargets' | 'onSkipped'> {
  readonly onProgress: OnProgress | undefined
}

/** Writes which revision each skill has now, for `--locked`. */
export const run: RunCommand = async ({ positionals, flags }, context) => {
  const { cwd, print } = context
  const folders = positionals.length === 0 && !flags.has('config') ? [DEFAULT_FOLDER] : positionals
  const out = resolve(cwd, flags.get('out')?.at(-1) ?? DEFAULT_FILE)
  const linkTargets = readLinkTargets({ flags }, context)
  const lock = await namingSkipped(context, async (onSkipped) =>
    await withRoots({ positionals: folders, flags }, context, ({ projectRoots }) =>
      readLock(projectRoots, { linkTargets, onSkipped, onProgress: showing(context.progress, 'skill') })))
  const { formatLock } = await import('../../trust/lock-file.ts')
  const before = await readBefore(out)
  await writeLock(out, formatLock(lock))
  for (const line of differences(before, lock)) print(`${line}\n`)
  print(`${basename(out)}: ${counted(lock.size, 'skill')}\n`)
  return 0
}

async function writeLock (out: string, text: string): Promise<void> {
  try {
    await replaceFile(out, text)
  } catch (error) {
    throw new CommandError(
      `cannot write the lock: ${out} cannot be written (${whyUnwritable(error)}), --out chooses another file`
    )
  }
}

/** Each folder by itself: of two with a skill of one name, some callers see the later one alone. */
async function readLock (roots: readonly RootOptions[], options: ReadOptions): Promise<Lock> {
  const lock = new Map<string, Set<string>>()
  for (const root of roots) {
    for (const [name, revision] of await readRevisions(root, options)) {
      lock.set(name, (lock.get(name) ?? new Set()).add(revision))
    }
  }
  if (lock.size === 0) {
    const where = roots.length === 0 ? '' : ` in ${roots.map(({ path }) => path).join(', ')}`
    throw new CommandError(`there are no skills to lock${where}`)
  }
  return lock
}

async function readRevisions (
  root: RootOptions, { onProgress, ...options }: ReadOptions
): Promise<ReadonlyMap<string, string>> {
  const [{ createSkillManager }, { ROOT_PROBLEMS }] =
    await Promise.all([import('../../core/skill-manager.ts'), import('../../core/roots/root.ts')])
  const skills = createSkillManager({ projectRoots: [root], watcher: false, keep: { keepMs: 0 }, ...options })
  try {
    await skills.start()
    const { roots: [report] } = await skills.freshStatus()
    if (report?.state !== 'ok') throw new CommandError(`${root.path} ${ROOT_PROBLEMS[report?.state ?? 'missing']}`)
    const revisions = new Map<string, string>()
    const names = await skills.list()
    for (const name of names) {
      onProgress?.(revisions.size, names.length)
      const { revision, unread } = await readSkill(skills, name)
      if (unread !== undefined) throw new CommandError(`the skill ${JSON.stringify(name)} cannot be locked: ${unread}`)
      revisions.set(name, revision)
    }
    return revisions
  } finally {
    await skills.close()
  }
}

/** A revision covers what could be read. `unread` says what it lacks. */
async function readSkill (
  skills: SkillSource, name: string
): Promise<{ readonly revision: string, readonly unread: string | undefined }> {
  const { unreadPart } = await import('../../trust/verify.ts')
  try {
    return await skills.read(name, async (state) => {
      const { revision } = await state.manifest()
      return { revision, unread: await unreadPart(state) }
    })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new CommandError(`the skill ${JSON.stringify(name)} has no revision: ${problem}`)
  }
}

/** Undefined where no lock that can be read is there. */
async function readBefore (path: string): Promise<Lock | undefined> {
  const { readTextFile } = await import('../../config/files/yaml-file.ts')
  const { parseLock } = await import('../../trust/lock-file.ts')
  try {
    return parseLock(path, await readTextFile(path))
  } catch {
    return undefined
  }
}

/** So that a change is not locked unread. */
function differences (before: Lock | undefined, now: Lock): readonly string[] {
  if (before === undefined) return []
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  return names.flatMap((name) => {
    const [pinned, revisions] = [before.get(name), now.get(name)]
    if (pinned === undefined) return [`added    ${JSON.stringify(name)}`]
    if (revisions === undefined) return [`removed  ${JSON.stringify(name)}`]
    const isSame = pinned.size === revisions.size && [...revisions].every((revision) => pinned.has(revision))
    return isSame ? [] : [`changed  ${JSON.stringify(name)}`]
  })
}
