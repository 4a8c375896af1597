import { ConfigError } from '../../operator/setting.ts'
import { resolve } from 'node:path'
import { readTextFile } from '../../operator/yaml-file.ts'
import { checkLockFile, parseLock } from '../../trust/lock-file.ts'
import type { TrustReport } from '../../schemas/trust.ts'
import { TrustPolicy } from '../../trust/trust-policy.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { verifySkills } from '../../trust/verify.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

interface Options extends ReadOptions {
  readonly trust?: string
  readonly locked?: string
  readonly json?: true
}

/** Checks skills as a service with this trust file or lock does. */
export const run: RunCommand<Options> = async ({ positionals, options }, context) => {
  const { cwd, print } = context
  const { json } = options
  const read = async <T>(setting: string, name: string | undefined, parse: (path: string, text: string) => T) =>
    name === undefined ? undefined : await parse(resolve(cwd, name), await readTextFile(resolve(cwd, name), setting))
  if (options.locked !== undefined) await checkLockFile(resolve(cwd, options.locked), '--locked')
  const lock = await read('--locked', options.locked, parseLock)
  const trust = await read('--trust', options.trust, parseTrust)
  if (lock === undefined && trust === undefined) throw new ConfigError('verify needs --trust FILE or --locked FILE')
  const policy = new TrustPolicy({ lock, trust })
  const skills: Array<{ name: string, ok: boolean, problem: string } & Partial<TrustReport>> = []
  await withSkills({ positionals, options }, context, async (opened) => {
    for (const place of opened) {
      const verdicts = await verifySkills(place.skills, place.names, policy)
      for (const [name, { isServed: ok, report, findings }] of verdicts) {
        skills.push({ name, ok, ...report, problem: findings.map(({ message }) => message).join('; ') })
      }
    }
    // A single skill is checked alone: other entries of the lock are not missing.
    if (opened.some(({ isOneSkill }) => isOneSkill)) return
    const names = new Set(skills.map(({ name }) => name))
    const problem = 'the skill is in the lock, but in no folder'
    for (const name of lock?.keys() ?? []) if (!names.has(name)) skills.push({ name, ok: false, problem })
  })
  if (json) {
    print(`${JSON.stringify({ skills }, undefined, 2)}\n`)
  } else {
    print(inColumns(skills.map(({ name, ok, problem, signer }) =>
      [ok ? 'ok     ' : 'refused', JSON.stringify(name), signer ?? '-', problem])))
  }
  return skills.every(({ ok }) => ok) ? 0 : 1
}
