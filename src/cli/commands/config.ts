import { Policy } from '../../access/policy.ts'
import { readConfigFile } from '../../config/config-file.ts'
import { readTextFile } from '../../operator/yaml-file.ts'
import { type Resolved, resolveSettings } from '../../config/load.ts'
import { checkRoots } from '../../config/roots.ts'
import { ConfigError } from '../../operator/setting.ts'
import type { Config } from '../../config/settings.ts'
import { parseLock } from '../../trust/lock-file.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { folderChecks, settingSources } from '../folders.ts'
import { EXAMPLE_SKILLS } from '../../operator/package-files.ts'

/** Prints the effective settings, and everything that would keep the service from starting. */
export const run: RunCommand = async (args, context) => {
  const { env, print, warn } = context
  const settings = resolveSettings(settingSources(args, context, EXAMPLE_SKILLS))
  const config = Object.fromEntries(settings.map(({ name, value }) => [name, value])) as Config
  const { accessFile, configFile, lockFile, publicUrl, trustFile } = config
  const mistakes = new Set(settings.flatMap(({ error }) => error?.message ?? []))
  const rows = settings.map(rowOf)
  const check = async <T>(reading: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await reading()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      mistakes.add(error.message)
      return undefined
    }
  }
  for (const checkFolder of folderChecks(args, context, EXAMPLE_SKILLS)) await check(checkFolder)
  if (configFile !== undefined) {
    const sources = await check(async () => await readConfigFile(configFile))
    for (const [index, { kind, name = '' }] of sources?.entries() ?? []) {
      rows.push([`sources[${index}]`, `${kind} ${name}`.trim(), configFile])
    }
  }
  const areFoldersKnown = settings.every(({ name, error }) =>
    error === undefined || (name !== 'skillsDirs' && name !== 'personalDir'))
  const names = areFoldersKnown ? await check(async () => await checkRoots(config, env)) : undefined
  const checkFile = async (
    file: string | undefined, setting: string, parse: (path: string, text: string) => unknown
  ): Promise<void> => {
    if (file !== undefined) await check(async () => parse(file, await readTextFile(file, setting)))
  }
  // Its rules name folders.
  if (names !== undefined) {
    await checkFile(accessFile, 'ACCESS_FILE or --access', (path, text) => new Policy(path, text, names, publicUrl))
  }
  await checkFile(trustFile, 'TRUST_FILE or --trust', async (path, text) => await parseTrust(path, text, names))
  await checkFile(lockFile, 'LOCKED or --locked', parseLock)
  print(inColumns(rows))
  for (const mistake of mistakes) warn(mistake)
  return mistakes.size === 0 ? 0 : 1
}

function rowOf ({ row: { variable, isSecret }, origin = '', value }: Resolved): string[] {
  const text = [value ?? []].flat().join(', ')
  return [variable, text === '' ? '-' : isSecret === true ? '(secret)' : text, origin]
}
