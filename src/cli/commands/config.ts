import { Policy } from '../../access/policy.ts'
import { readConfigFile } from '../../config/config-file.ts'
import { readTextFile } from '../../config/files/yaml-file.ts'
import { type Resolved, resolveSettings } from '../../config/load.ts'
import { openRoots } from '../../config/roots.ts'
import { ConfigError, type Environment } from '../../config/setting.ts'
import type { Config } from '../../config/settings.ts'
import { SILENT } from '../../core/shared/log.ts'
import { parseLock } from '../../trust/lock-file.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { settingSources, withExamples } from '../folders.ts'

/** Prints the effective settings, and everything that would keep the service from starting. */
export const run: RunCommand = async (args, context) => {
  const { env, print, warn } = context
  const settings = resolveSettings(withExamples(settingSources(args, context)))
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
  if (configFile !== undefined) {
    const sources = await check(async () => await readConfigFile(configFile))
    for (const [index, { kind, name = '' }] of sources?.entries() ?? []) {
      rows.push([`sources[${index}]`, `${kind} ${name}`.trim(), configFile])
    }
  }
  const areFoldersKnown = settings.every(({ name, error }) =>
    error === undefined || (name !== 'skillsDirs' && name !== 'personalDir'))
  const names = areFoldersKnown ? await check(async () => await readRootNames(config, env)) : undefined
  // Its rules name folders.
  if (accessFile !== undefined && names !== undefined) {
    await check(async () => new Policy(
      accessFile, await readTextFile(accessFile, 'ACCESS_FILE or --access'), names, publicUrl
    ))
  }
  if (trustFile !== undefined) {
    await check(async () => await parseTrust(trustFile, await readTextFile(trustFile, 'TRUST_FILE or --trust'), names))
  }
  if (lockFile !== undefined) {
    await check(async () => parseLock(lockFile, await readTextFile(lockFile, 'LOCKED or --locked')))
  }
  print(inColumns(rows))
  for (const mistake of mistakes) warn(mistake)
  return mistakes.size === 0 ? 0 : 1
}

function rowOf ({ row: { variable, isSecret }, origin = '', value }: Resolved): string[] {
  const text = [value ?? []].flat().join(', ')
  return [variable, text === '' ? '-' : isSecret === true ? '(secret)' : text, origin]
}

/** The names of the folders and sources. */
async function readRootNames (config: Config, env: Environment): Promise<readonly string[]> {
  const { sources } = await openRoots(config, { log: SILENT, env })
  await sources.close()
  return sources.names
}
