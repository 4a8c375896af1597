import { ConfigError } from '../../config/setting.ts'
import { basename, resolve } from 'node:path'
import { replaceFile } from '../../config/files/files.ts'
import { readTextFile } from '../../config/files/yaml-file.ts'
import type { View } from '../../core/view.ts'
import { SkillError } from '../../core/shared/errors.ts'
import { counted } from '../../core/shared/text.ts'
import { formatLock, type Lock, parseLock } from '../../trust/lock-file.ts'
import { unreadPart } from '../../trust/verify.ts'
import type { RunCommand } from '../command.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

const DEFAULT_FOLDER = './skills'
const DEFAULT_FILE = 'skills.lock'

/** Writes which revision each skill has now, for `--locked`. */
export const run: RunCommand<ReadOptions & { readonly out?: string }> = async (args, context) => {
  const { positionals, options } = args
  const { cwd, print } = context
  const folders = positionals.length === 0 && options.config === undefined ? [DEFAULT_FOLDER] : positionals
  const out = resolve(cwd, options.out ?? DEFAULT_FILE)
  const lock = new Map<string, Set<string>>()
  // Each folder by itself: of two with a skill of one name, some callers see the later one alone.
  await withSkills({ positionals: folders, options }, context, async (opened) => {
    for (const { skills, names } of opened) {
      for (const name of names) lock.set(name, (lock.get(name) ?? new Set()).add(await readRevision(skills, name)))
    }
  })
  const before = await readTextFile(out).then((text) => parseLock(out, text)).catch(() => undefined)
  await replaceFile(out, formatLock(lock), `--out: ${out}`)
  if (before !== undefined) for (const line of differences(before, lock)) print(`${line}\n`)
  print(`${basename(out)}: ${counted(lock.size, 'skill')}\n`)
  return 0
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

/** So that a change is not locked unread. */
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
