import { Policy } from '../../access/policy.ts'
import { type Resolved, resolveSettings } from '../../config/load.ts'
import { checkRoots } from '../../config/roots.ts'
import type { Config, SettingName } from '../../config/settings.ts'
import { EXAMPLE_SKILLS } from '../../operator/package-files.ts'
import { ConfigError } from '../../operator/setting.ts'
import { readTextFile } from '../../operator/yaml-file.ts'
import { maskSecrets } from '../../secrets.ts'
import { isAddress } from '../../sources/address/address.ts'
import { kindOf, type RootSpec, type Source } from '../../sources/kinds.ts'
import { parseLock } from '../../trust/lock-file.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { readArguments } from '../folders.ts'

/** Prints the effective settings and sources, and everything that would keep the service from starting. */
export const run: RunCommand = async (args, context) => {
  const { env, print, warn } = context
  const { sources, checks } = readArguments(args, context, EXAMPLE_SKILLS)
  const settings = resolveSettings(sources)
  const config = Object.fromEntries(settings.map(({ name, value }) => [name, value])) as Config
  const { accessFile, configFile, lockFile, publicUrl, skillsDirs, trustFile } = config
  const mistakes = new Set(settings.flatMap(({ error }) => error?.message ?? []))
  const check = async <T>(reading: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await reading()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      mistakes.add(error.message)
      return undefined
    }
  }
  for (const checkFolder of checks) await check(checkFolder)
  const areFoldersKnown = settings.every(({ name, error }) =>
    error === undefined || (name !== 'skillsDirs' && name !== 'personalDir'))
  const roots = areFoldersKnown ? await check(async () => await checkRoots(config, env)) : undefined
  const names = roots?.map(([, name]) => name)
  const checkFile = async (
    file: string | undefined, setting: string, parse: (path: string, text: string) => unknown
  ): Promise<void> => {
    if (file !== undefined) await check(async () => parse(file, await readTextFile(file, setting)))
  }
  // The rules of an access file name roots, so it can be checked only when these are known.
  if (names !== undefined) {
    await checkFile(accessFile, 'ACCESS_FILE or --access', (path, text) => new Policy(path, text, names, publicUrl))
  }
  await checkFile(trustFile, 'TRUST_FILE or --trust', async (path, text) => await parseTrust(path, text, names))
  await checkFile(lockFile, 'LOCKED or --locked', parseLock)
  print(inColumns(settings.map(rowOf)))
  if (roots !== undefined) {
    const originOf = (name: SettingName) => settings.find((each) => each.name === name)?.origin
    const rows = roots.map(([spec, name], index) => {
      if (index < skillsDirs.length) return sourceRow(spec, name, originOf('skillsDirs'))
      return sourceRow(spec, name, spec.type === 'personal' ? originOf('personalDir') : configFile)
    })
    print(`\n${inColumns([['SOURCE', 'KIND', 'ADDRESS', 'REF', 'INTERVAL', 'LAYOUT', 'FROM'], ...rows])}`)
  }
  for (const mistake of mistakes) warn(mistake)
  return mistakes.size === 0 ? 0 : 1
}

function rowOf ({ row: { variable, isSecret }, origin = '', value }: Resolved): string[] {
  const text = [value ?? []].flat().map(String).map((each) => isAddress(each) ? withoutSecrets(each) : each).join(', ')
  return [variable, text === '' ? '-' : isSecret === true ? '(secret)' : text, origin]
}

function sourceRow (spec: RootSpec, name: string, origin = ''): string[] {
  const intervalMs = spec.kind === 'folder' ? undefined : spec.intervalMs ?? kindOf(spec).intervalMs
  const interval = intervalMs === undefined ? '-' : `${intervalMs / 1_000}s`
  const ref = spec.kind === 'git' ? spec.ref ?? '(default)' : '-'
  const address = spec.kind === 'folder' ? spec.path : withoutSecrets(addressOf(spec))
  return [name, spec.kind, address, ref, interval, spec.layout ?? 'flat', origin]
}

function addressOf (spec: Source): string {
  if (spec.kind === 's3') return `s3://${spec.bucket}/${spec.prefixPath}`
  if (spec.kind === 'oci') return `oci://${spec.registry}/${spec.repository}:${spec.reference}`
  return 'path' in spec && spec.path ? `${spec.url}#:${spec.path}` : spec.url
}

/** Masks secrets: a query may hold a token, and the path of a private site does. */
function withoutSecrets (address: string): string {
  return maskSecrets(address.replace(/\?[^#]*/, '?…'))
}
