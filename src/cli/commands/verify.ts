import { resolve } from 'node:path'
import { readTextFile } from '../../config/files/yaml-file.ts'
import { parseLock } from '../../trust/lock-file.ts'
import { Policy } from '../../trust/policy.ts'
import { parseTrust } from '../../trust/trust-file.ts'
import { type VerifiedSkill, verifySkills } from '../../trust/verify.ts'
import { inColumns } from '../columns.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

interface Options extends ReadOptions {
  readonly trust?: string
  readonly locked?: string
  readonly json?: true
}

/** Checks skills as a service with this trust file and `require` does. */
export const run: RunCommand<Options> = async ({ positionals, options }, context) => {
  const { cwd, print } = context
  const { json } = options
  const read = async <T>(setting: string, name: string | undefined, parse: (path: string, text: string) => T) =>
    name === undefined ? undefined : await parse(resolve(cwd, name), await readTextFile(resolve(cwd, name), setting))
  const lock = await read('--locked', options.locked, parseLock)
  const trust = await read('--trust', options.trust, parseTrust)
  if (lock === undefined && trust === undefined) throw new CommandError('verify needs --trust FILE or --locked FILE')
  const policy = new Policy({ lock, trust })
  const verified: VerifiedSkill[] = []
  await withSkills({ positionals, options }, context, async (opened) => {
    for (const { skills, names } of opened) verified.push(...await verifySkills(skills, names, policy))
    // A single skill stands for itself.
    if (opened.some(({ isOneSkill }) => isOneSkill)) return
    const names = new Set(verified.map(({ name }) => name))
    const problem = 'the lock names this skill, and no folder has it'
    for (const name of lock?.keys() ?? []) {
      if (!names.has(name)) verified.push({ name, report: undefined, isServed: false, problem })
    }
  })
  const skills = verified.map(({ name, isServed, problem, report }) => ({ name, ok: isServed, ...report, problem }))
  if (json) {
    print(`${JSON.stringify({ skills }, undefined, 2)}\n`)
  } else {
    print(inColumns(skills.map(({ name, ok, problem, ...report }) =>
      [ok ? 'ok     ' : 'refused', JSON.stringify(name), report.signer ?? '-', problem])))
  }
  return skills.every(({ ok }) => ok) ? 0 : 1
}
