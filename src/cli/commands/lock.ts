import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { counted } from '../../core/shared/text.ts'
import { realPathOf, textForFile, whyUnwritable } from '../../config/files/files.ts'
import type { RootOptions } from '../../core/roots/root.ts'
import type { SkillSource } from '../../core/skill-source.ts'
import type { Lock } from '../../trust/lock-file.ts'
import type { ListOptions } from '../../trust/verify-folder.ts'
import { type Command, CommandError } from '../command.ts'
import { namingSkipped } from '../folders/left-out.ts'
import { readLinkTargets, ROOT_FLAGS, withRoots } from '../folders/open-folders.ts'
import { showing } from '../progress.ts'

const DEFAULT_FOLDER = './skills'
const DEFAULT_FILE = 'skills.lock'

/** Writes which revision each skill has now, for `--locked`. */
export const command: Command = {
  summary: 'writes the present revisions of skills to a file, for serve --locked',
  positionals: '[DIR...]',
  flags: ['out', 'allow-links', 'config', ...ROOT_FLAGS],
  details: () => `  DIR                folders of skills, or addresses of sources, as for serve; default ${DEFAULT_FOLDER}
  --out FILE         the file to write; default ${DEFAULT_FILE}
  --allow-links DIR  folders that links in a folder of skills may lead into, as for serve
  --config FILE      a file with sources, as for serve; without DIR, they alone are locked
  --layout LAYOUT    where skills lie, as for serve
  --state-dir DIR    where sources are fetched to, as for serve

Prints what is different from the file before. Exits with 0 when the file is written, with 1 and a line that says why
when a folder or a skill cannot be read, or there is no skill: then nothing is written.
`,
  async run ({ positionals, flags }, context) {
    const { cwd, print } = context
    const folders = positionals.length === 0 && !flags.has('config') ? [DEFAULT_FOLDER] : positionals
    const out = resolve(cwd, flags.get('out')?.at(-1) ?? DEFAULT_FILE)
    const linkTargets = readLinkTargets({ flags }, context)
    const lock = await namingSkipped(context, async (onSkipped) =>
      await withRoots(folders, { flags }, context, ({ projectRoots }) => readLock(projectRoots, { linkTargets, onSkipped, onProgress: showing(context.progress, 'skill') })))
    const { formatLock } = await import('../../trust/lock-file.ts')
    const before = await readBefore(out)
    await writeLock(out, formatLock(lock))
    for (const line of differences(before, lock)) print(`${line}\n`)
    print(`${basename(out)}: ${counted(lock.size, 'skill')}\n`)
    return 0
  }
}

/** A link stays one. A device or pipe would be replaced by a file: `--out /dev/stdout`, by root. */
export async function writeLock (out: string, text: string): Promise<void> {
  const stats = await stat(out).catch(() => undefined)
  if (stats !== undefined && !stats.isFile() && !stats.isDirectory()) throw new CommandError(`cannot write the lock: ${out} is no regular file, --out chooses another file`)
  const cannot = (error: unknown, remedy: string) => new CommandError(`cannot write the lock: ${out} cannot be written (${whyUnwritable(error)}), ${remedy}`)
  try {
    textForFile(text)
  } catch (error) {
    throw cannot(error, 'lock fewer folders')
  }
  const target = await realPathOf(out)
  const temporary = `${target}.${process.pid}.tmp`
  try {
    await writeFile(temporary, text)
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw cannot(error, '--out chooses another file')
  }
}

/** Each folder by itself: of two with a skill of one name, some callers see the later one alone. */
async function readLock (roots: readonly RootOptions[], options: ListOptions): Promise<Lock> {
  const lock = new Map<string, Set<string>>()
  for (const root of roots) {
    for (const [name, revision] of await readRevisions(root, options)) lock.set(name, (lock.get(name) ?? new Set()).add(revision))
  }
  if (lock.size === 0) throw new CommandError(`there are no skills to lock${roots.length === 0 ? '' : ` in ${roots.map(({ path }) => path).join(', ')}`}`)
  return lock
}

async function readRevisions (root: RootOptions, options: ListOptions): Promise<ReadonlyMap<string, string>> {
  const [{ readRoot }, { ROOT_PROBLEMS }] = await Promise.all([import('../../trust/verify-folder.ts'), import('../../core/roots/root-reports.ts')])
  return await readRoot(root, options, async (skills) => {
    const { roots: [report] } = await skills.freshStatus()
    if (report?.state !== 'ok') throw new CommandError(`${root.path} ${ROOT_PROBLEMS[report?.state ?? 'missing']}`)
    const revisions = new Map<string, string>()
    const names = await skills.list()
    for (const name of names) {
      options.onProgress?.(revisions.size, names.length)
      const { revision, unread } = await readSkill(skills, name)
      if (unread !== undefined) throw new CommandError(`the skill ${JSON.stringify(name)} cannot be locked: ${unread}`)
      revisions.set(name, revision)
    }
    return revisions
  })
}

/** A revision covers what could be read. `unread` says what it lacks. */
async function readSkill (skills: SkillSource, name: string): Promise<{ readonly revision: string, readonly unread: string | undefined }> {
  const { unreadPart } = await import('../../trust/verify-folder.ts')
  try {
    return await skills.read(name, async (state) => {
      const { revision } = await state.manifest()
      return { revision, unread: await unreadPart(state) }
    })
  } catch (error) {
    throw new CommandError(`the skill ${JSON.stringify(name)} has no revision: ${error instanceof Error ? error.message : String(error)}`)
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
