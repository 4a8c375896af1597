import { Policy } from '../../access/policy.ts'
import { readConfigFile } from '../../config/config-file.ts'
import { readSetting, readTextFile } from '../../config/files/yaml-file.ts'
import { idleSettings } from '../../config/idle-settings.ts'
import { type Resolved, resolveSettings } from '../../config/load.ts'
import { openRoots } from '../../config/roots.ts'
import { ConfigError, type Environment } from '../../config/setting.ts'
import type { Config } from '../../config/settings.ts'
import { checkPlaces } from '../../config/written-places.ts'
import { SILENT } from '../../core/shared/log.ts'
import { createSkillManager } from '../../core/skill-manager.ts'
import { parseLock } from '../../trust/lock-file.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { defaultsOf } from '../folders.ts'

/** Prints the effective settings, and everything that would keep the service from starting. */
export const run: RunCommand = async (args, { env, cwd, print, warn }) => {
  const settings = resolveSettings({ ...args, env, cwd, ...defaultsOf(cwd) })
  const config = Object.fromEntries(settings.map(({ name, value }) => [name, value])) as Config
  const { configFile } = config
  const isNamed = args.positionals.length > 0 || Boolean(env['SKILLS_DIR'])
  const effective = !isNamed && configFile !== undefined ? { ...config, skillsDirs: [] } : config
  const mistakes: string[] = settings.flatMap(({ error }) => error?.message ?? [])
  const wrong = new Set(settings.flatMap(({ name, error }) => error === undefined ? [] : name))
  const rows = settings.map((setting) =>
    rowOf(setting.name === 'skillsDirs' ? { ...setting, value: effective.skillsDirs } : setting))

  async function check<T> (reading: () => Promise<T>): Promise<T | undefined> {
    try {
      return await reading()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      if (!mistakes.includes(error.message)) mistakes.push(error.message)
      return undefined
    }
  }

  if (configFile !== undefined) {
    const sources = await check(async () => await readSetting('CONFIG_FILE or --config', readConfigFile(configFile)))
    for (const [index, { kind, name = '' }] of sources?.entries() ?? []) {
      rows.push([`sources[${index}]`, `${kind} ${name}`.trim(), configFile])
    }
  }
  const areFoldersKnown = !wrong.has('skillsDirs') && !wrong.has('personalDir')
  const names = areFoldersKnown ? await check(async () => await checkRoots(effective, env)) : undefined
  await checkFiles(effective, names, check)
  print(inColumns(rows))
  if (mistakes.length === 0) for (const problem of idleSettings(config)) warn(problem)
  for (const mistake of mistakes) warn(mistake)
  return mistakes.length === 0 ? 0 : 1
}

function rowOf ({ row: { variable, isSecret }, origin = '', value }: Resolved): string[] {
  const text = [value ?? []].flat().join(', ')
  return [variable, text === '' ? '-' : isSecret === true ? '(secret)' : text, origin]
}

/** The names of the folders and sources. */
async function checkRoots (config: Config, env: Environment): Promise<readonly string[]> {
  const { sources, ...roots } = await openRoots(config, { log: SILENT, env })
  const skills = createSkillManager({ ...roots, watcher: false })
  try {
    await checkPlaces(config, roots)
    return skills.rootNames
  } finally {
    await skills.close()
    await sources?.close()
  }
}

async function checkFiles (
  { accessFile, publicUrl, trustFile, lockFile }: Config, names: readonly string[] | undefined,
  check: (reading: () => Promise<unknown>) => Promise<unknown>
): Promise<void> {
  const read = async (setting: string, path: string): Promise<string> => await readSetting(setting, readTextFile(path))
  // Its rules name folders.
  if (accessFile !== undefined && names !== undefined) {
    await check(async () => Policy.parse(accessFile, await read('ACCESS_FILE or --access', accessFile), {
      roots: names, publicUrl
    }))
  }
  if (trustFile !== undefined) {
    await check(async () => parseTrust(trustFile, await read('TRUST_FILE or --trust', trustFile), names))
  }
  if (lockFile !== undefined) await check(async () => parseLock(lockFile, await read('LOCKED or --locked', lockFile)))
}
