import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { whyUnreadable } from '../../config/files/files.ts'
import { type Command, CommandError } from '../command.ts'
import { namingSkipped } from '../folders/left-out.ts'
import { showing } from '../progress.ts'

/** Longest key or chain that is read: a pipe may have no end. */
const MAX_KEY_BYTES = 1_048_576

/** Signs skills for `--trust`. */
export const command: Command = {
  summary: 'signs a skill, or all skills of a folder',
  positionals: 'DIR',
  flags: ['key', 'chain'],
  details: () => `  DIR           a skill, or a folder of skills
  --key FILE    private key (PEM; P-256, P-384 or P-521) without a password
  --chain FILE  certificates (PEM) to be put into the signature, that of the key first

Writes skill.oms.sig, in the format of OpenSSF Model Signing 1.0, into each skill. Exits with 0 when all are signed, with 1 and a
line that says why otherwise.
`,
  async run ({ positionals: [folder, unwanted], flags }, context) {
    const { cwd, print } = context
    const [keyFile, chainFile] = [flags.get('key')?.at(-1), flags.get('chain')?.at(-1)]
    if (folder === undefined || unwanted !== undefined) throw new CommandError('sign takes one folder: skillserve sign DIR --key FILE')
    if (keyFile === undefined) throw new CommandError('sign needs --key FILE')
    const { KeyError, parseSigningKey, signFolder, SigningError } = await import('../../trust/sign-folder.ts')
    const { FolderError } = await import('../../trust/verify-folder.ts')
    try {
      const key = parseSigningKey(await read(resolve(cwd, keyFile)), chainFile === undefined ? undefined : await read(resolve(cwd, chainFile)))
      const names = await namingSkipped(context, async (onSkipped) => await signFolder(resolve(cwd, folder), key, { onSkipped, onProgress: showing(context.progress, 'skill') }), (target) => `sign ${target} by itself`)
      for (const name of names) print(`signed  ${JSON.stringify(name)}\n`)
      return 0
    } catch (error) {
      if (error instanceof KeyError) throw new CommandError(`--${error.part} ${error.part === 'key' ? keyFile : chainFile} ${error.message}`)
      if (error instanceof SigningError || error instanceof FolderError) throw new CommandError(error.message)
      throw error
    }
  }
}

async function read (path: string): Promise<string> {
  try {
    return await text(createReadStream(path, { end: MAX_KEY_BYTES }))
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${whyUnreadable(error)}`)
  }
}
