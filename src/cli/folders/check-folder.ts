import { readdir } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { listedMainFile } from '../../core/format/main-files.ts'
import { isFolder } from '../../config/files/files.ts'
import { quote } from '../../config/setting.ts'
import { isAddress, meantAddress } from '../../sources/address/address.ts'
import { CommandError, commandHint, type CommandTable } from '../command.ts'

/** A disk that has not answered after this many milliseconds does not keep the service from starting. */
const DISK_ANSWER_MS = 1_000

/**
 * Checks what was given as a folder of skills. `./path`, an absolute path or a name with a separator is a folder, there
 * or not. A bare word is one only if it is there, since it may as well be a mistyped command.
 * @param commands what a bare word may be a mistyping of; absent behind the name of a command that was understood
 * @param layout with another than `flat`, the folder may itself be a skill; an empty one is that of an unset variable
 * @throws CommandError for an unknown word, and for a folder that is itself a skill
 */
export async function checkSkillsFolder (text: string, cwd: string, commands: CommandTable | undefined, layout?: string): Promise<void> {
  if (isAddress(text)) return
  await Promise.race([check(text, resolve(cwd, text), commands, layout || 'flat'), sleep(DISK_ANSWER_MS, undefined, { ref: false })])
}

async function check (text: string, path: string, commands: CommandTable | undefined, layout: string): Promise<void> {
  const address = meantAddress(text)
  if (address !== undefined && !await isFolder(path)) throw new CommandError(`${quote(text)} is no folder here, and no address of skills: did you mean ${quote(address)}?`)
  if (isBareWord(text) && !await isFolder(path)) {
    if (commands === undefined) throw new CommandError(`${quote(text)} is no folder in ${dirname(path)}`)
    throw new CommandError(`${quote(text)} is no command, and no folder here${commandHint(text, commands)}. A folder that is not there yet is given as ${quote(`./${text}`)}`)
  }
  if (layout !== 'flat') return
  const mainFile = await findMainFile(path)
  if (mainFile === undefined) return
  const parent = join(text, '..')
  throw new CommandError(`${quote(text)} is itself a skill, with its own ${mainFile}: give the folder that holds it, ${JSON.stringify(isBareWord(parent) ? `./${parent}` : parent)}`)
}

function isBareWord (text: string): boolean {
  return text !== '.' && text !== '..' && !isAbsolute(text) && !text.includes('/') && !text.includes(sep)
}

/** A folder that cannot be listed is left to the service, which says why. */
async function findMainFile (folder: string): Promise<string | undefined> {
  try {
    return listedMainFile(await readdir(folder, { withFileTypes: true }))
  } catch {
    return undefined
  }
}
