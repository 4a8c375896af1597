import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { whyUnreadable } from '../../config/files/files.ts'
import { parseSigningKey, SigningError, signSkills } from '../../trust/sign.ts'
import { PathError, placeOf, withSkills } from '../../validate/with-skills.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { namingSkipped, readLinkTargets } from '../folders.ts'
import { showing } from '../progress.ts'

/** Longest key or chain that is read: a pipe may have no end. */
const MAX_KEY_BYTES = 1_048_576

/** Signs skills for `--trust`. */
export const run: RunCommand = async ({ positionals: [folder = ''], flags }, context) => {
  const [keyFile = '', chainFile] = [flags.get('key')?.at(-1), flags.get('chain')?.at(-1)]
  const read = async (file: string): Promise<string> => {
    const path = resolve(context.cwd, file)
    try {
      return await text(createReadStream(path, { end: MAX_KEY_BYTES }))
    } catch (error) {
      throw new CommandError(`${path} cannot be read: ${whyUnreadable(error)}`)
    }
  }
  try {
    const key = parseSigningKey(await read(keyFile), chainFile === undefined ? undefined : await read(chainFile))
    const places = [await placeOf(folder, context.cwd)]
    const linkTargets = readLinkTargets({ flags }, context)
    const names = await namingSkipped(context, async (onSkipped) =>
      await withSkills(places, { linkTargets, onSkipped }, async (opened) => {
        for (const { place, skills, names } of opened) {
          await signSkills(place.root.path, skills, names, key, showing(context.progress, 'skill'))
        }
        return opened.flatMap(({ names }) => names)
      }))
    for (const name of names) context.print(`signed  ${JSON.stringify(name)}\n`)
    return 0
  } catch (error) {
    if (error instanceof SigningError || error instanceof PathError) throw new CommandError(error.message)
    throw error
  }
}
