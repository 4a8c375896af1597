import { ConfigError } from '../../operator/setting.ts'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { replaceFile } from '../../operator/files.ts'
import { readTextFile } from '../../operator/yaml-file.ts'
import type { View } from '../../core/view.ts'
import { SkillError } from '../../core/shared/errors.ts'
import { counted } from '../../core/shared/text.ts'
import { formatLock, isLockText, type Lock, parseLock } from '../../trust/lock-file.ts'
import { unreadPart } from '../../trust/verify.ts'
import type { RunCommand } from '../command.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

const DEFAULT_FOLDER = './skills'
const DEFAULT_FILE = 'skills.lock'

interface Options extends ReadOptions {
  readonly out?: string
}

/** Writes the present revision of each skill for `--locked`, and prints what differs from the lock before. */
export const run: RunCommand<Options> = async (args, context) => {
  const { positionals, options } = args
  const { cwd, print } = context
  const folders = positionals.length === 0 && options.config === undefined ? [DEFAULT_FOLDER] : positionals
  const out = resolve(cwd, options.out ?? DEFAULT_FILE)
  const before = await readLock(out)
  const lock = new Map<string, Set<string>>()
  // Folders are read separately: of two skills with one name, some callers may see only the later one.
  await withSkills({ positionals: folders, options }, context, async (opened) => {
    for (const { skills, names } of opened) {
      for (const name of names) lock.set(name, (lock.get(name) ?? new Set()).add(await readRevision(skills, name)))
    }
  })
  for (const line of before === undefined ? [] : differences(before, lock)) print(`${line}\n`)
  await replaceFile(out, formatLock(lock), `--out: ${out}`)
  print(`${basename(out)}: ${counted(lock.size, 'skill')}\n`)
  return 0
}

/**
 * Reads the existing lock; undefined if there is none.
 * @throws ConfigError for a file that is not a lock, so that it is not overwritten
 */
async function readLock (path: string): Promise<Lock | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isFile() !== true) return undefined
  const text = await readTextFile(path)
  try {
    return parseLock(path, text)
  } catch {
    // The file is empty, or a lock with merge conflicts, and is written anew.
    if (isLockText(text) || text.trim() === '') return undefined
    throw new ConfigError(`--out: ${path} is not a lock: remove it, or write to another file`)
  }
}

async function readRevision (skills: View, name: string): Promise<string> {
  const fail = (reason: string) => new ConfigError(`the skill ${JSON.stringify(name)} cannot be locked: ${reason}`)
  try {
    return await skills.read(name, async (state) => {
      const { revision } = await state.manifest()
      const unread = await unreadPart(state)
      if (unread !== undefined) throw fail(unread)
      return revision
    })
  } catch (error) {
    throw error instanceof SkillError ? fail(error.message) : error
  }
}

/** Returns a line for each change of a lock, for review. */
function differences (before: Lock, now: Lock): readonly string[] {
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  return names.flatMap((name) => {
    const [pinned, revisions] = [before.get(name), now.get(name)]
    if (pinned === undefined) return [`added    ${JSON.stringify(name)}`]
    if (revisions === undefined) return [`removed  ${JSON.stringify(name)}`]
    const isSame = pinned.size === revisions.size && [...revisions].every((revision) => pinned.has(revision))
    return isSame ? [] : [`changed  ${JSON.stringify(name)}`]
  })
}
