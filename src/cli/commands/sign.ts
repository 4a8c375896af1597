import { ConfigError } from '../../operator/setting.ts'
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { reasonOf } from '../../operator/files.ts'
import { isAddress } from '../../sources/address/address.ts'
import { parseSigningKey, signSkills } from '../../trust/sign.ts'
import type { RunCommand } from '../command.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

/** Most bytes that are read of a key or chain, since a pipe may have no end. */
const MAX_KEY_BYTES = 1_048_576

interface Options extends Pick<ReadOptions, 'allowLinks'> {
  readonly key: string
  readonly chain?: string
}

/** Signs skills, for services with `--trust`. */
export const run: RunCommand<Options> = async ({ positionals, options }, context) => {
  const { key: keyFile, chain: chainFile } = options
  const read = async (file: string): Promise<string> => {
    const path = resolve(context.cwd, file)
    return await text(createReadStream(path, { end: MAX_KEY_BYTES })).catch((error: unknown) => {
      throw new ConfigError(`${path} cannot be read: ${reasonOf(error)}`)
    })
  }
  const key = parseSigningKey(await read(keyFile), chainFile === undefined ? undefined : await read(chainFile))
  if (positionals.some(isAddress)) throw new ConfigError('sign takes a folder, not the address of a source')
  const env = { LINK_TARGETS: context.env['LINK_TARGETS'] }
  await withSkills({ positionals, options }, { ...context, env }, async (opened) => {
    for (const { folder, skills, names } of opened) {
      await signSkills(folder, skills, names, key)
      for (const name of names) context.print(`signed  ${JSON.stringify(name)}\n`)
    }
  })
  return 0
}
