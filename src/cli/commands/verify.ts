import { resolve } from 'node:path'
import type { VerifiedSkill } from '../../trust/verify.ts'
import type { Place } from '../../validate/with-skills.ts'
import { isAddress } from '../../sources/address/address.ts'
import { inColumns } from '../columns.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { namingSkipped, readLinkTargets, withRoots } from '../folders.ts'
import { showing } from '../progress.ts'

/** Checks skills as a service with this trust file and `require` does. */
export const run: RunCommand = async ({ positionals: folders, flags }, context) => {
  const { cwd, print } = context
  const onProgress = showing(context.progress, 'skill')
  const [trustFile, lockFile] = [flags.get('trust')?.at(-1), flags.get('locked')?.at(-1)]
  if (trustFile === undefined && lockFile === undefined) {
    throw new CommandError('verify needs --trust FILE or --locked FILE')
  }
  const { readPolicy } = await import('../../trust/trust.ts')
  const { verifySkills } = await import('../../trust/verify.ts')
  const { PathError, placeOf, withSkills } = await import('../../validate/with-skills.ts')
  const { policy, lockedNames } = await readPolicy({
    ...trustFile !== undefined && { trustFile: resolve(cwd, trustFile) },
    ...lockFile !== undefined && { lockFile: resolve(cwd, lockFile) }
  })
  const linkTargets = readLinkTargets({ flags }, context)
  const hasLayout = (flags.get('layout')?.at(-1) ?? context.env['LAYOUT'] ?? 'flat') !== 'flat'
  try {
    const verified: VerifiedSkill[] = []
    let areAll = true
    await namingSkipped(context, async (onSkipped) => {
      const verify = async (places: readonly Place[]): Promise<void> => {
        await withSkills(places, { linkTargets, onSkipped }, async (opened) => {
          for (const { skills, names } of opened) {
            verified.push(...await verifySkills(skills, names, policy, '', onProgress))
          }
        })
      }
      for (const folder of folders) {
        if (isAddress(folder) || hasLayout) {
          await withRoots({ positionals: [folder], flags }, context, async ({ projectRoots }) => {
            await verify(projectRoots.map((root) => ({ root, path: folder, isFetched: true })))
          })
          continue
        }
        const place = await placeOf(folder, cwd)
        await verify([place])
        areAll &&= place.only === undefined
      }
    })
    const missing = areAll ? missingOf(lockedNames, verified) : []
    const skills = [...verified, ...missing].map(({ name, isServed, problem, report }) =>
      ({ name, ok: isServed, ...report, problem }))
    if (flags.has('json')) {
      print(`${JSON.stringify({ skills }, undefined, 2)}\n`)
    } else {
      print(inColumns(skills.map(({ name, ok, problem, ...report }) =>
        [ok ? 'ok     ' : 'refused', JSON.stringify(name), report.signer ?? '-', problem])))
    }
    return skills.every(({ ok }) => ok) ? 0 : 1
  } catch (error) {
    if (error instanceof PathError) throw new CommandError(error.message)
    throw error
  }
}

/** The skills of a lock that no folder has. */
function missingOf (locked: readonly string[], verified: readonly VerifiedSkill[]): VerifiedSkill[] {
  const names = new Set(verified.map(({ name }) => name))
  const problem = 'the lock names this skill, and no folder has it'
  return locked.filter((name) => !names.has(name))
    .map((name) => ({ name, report: undefined, isServed: false, problem }))
}
