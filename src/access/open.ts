import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { ConfigError } from '../config/setting.ts'
import { readSetting } from '../config/files/yaml-file.ts'
import { Access, type AccessOptions } from './access.ts'

const WRITABLE_BY_OTHERS = 0o002

/**
 * Opens the access file.
 * @param folders what is served, and the folders that links may lead into
 * @throws ConfigError of one line when the file cannot be used
 */
export async function openAccess (options: AccessOptions, folders: readonly string[]): Promise<Access> {
  await checkPlace(options.file, folders, options.log)
  return await readSetting('ACCESS_FILE or --access', Access.open(options))
}

/** What lies among skills is served to whoever sees them, and may be written by their authors. A file that is not there is complained about by its reader. */
async function checkPlace (file: string, folders: readonly string[], log: FastifyBaseLogger): Promise<void> {
  const path = await realpath(file).catch(() => file)
  for (const folder of folders) {
    const inside = relative(await realpath(folder).catch(() => folder), path)
    if (!/^\.\.(?:[/\\]|$)/.test(inside) && !isAbsolute(inside)) throw new ConfigError(`${file} is inside ${folder}, whose files are served: move the access file out of all folders of skills`)
  }
  const mode = await stat(path).then((found) => found.mode, () => 0)
  if ((mode & WRITABLE_BY_OTHERS) !== 0) log.warn({ file }, 'every user of this machine can write the access file')
}
