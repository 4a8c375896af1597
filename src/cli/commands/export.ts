import { resolve } from 'node:path'
import { Policy } from '../../access/policy.ts'
import { findCaller, refusalOf } from '../../access/report.ts'
import { checkNotServed, reasonOf } from '../../operator/files.ts'
import { readTextFile } from '../../operator/yaml-file.ts'
import { ConfigError, quote } from '../../operator/setting.ts'
import type { View } from '../../core/view.ts'
import { SkillError } from '../../core/shared/errors.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { counted, grouped } from '../../core/shared/text.ts'
import type { SkillManager } from '../../core/skill-manager.ts'
import { ExportError, exportSkills } from '../../export/export-skills.ts'
import { Shutdown } from '../../http/shutdown.ts'
import { openSkills } from '../../open-skills.ts'
import type { RunCommand } from '../command.ts'
import { fetchSources, readConfig, skippedWarner } from '../folders.ts'

interface Options {
  readonly as?: string
  readonly prune?: true
}

/** Writes skills as static files: all, or with an access file those that one caller sees. */
export const run: RunCommand<Options> = async ({ positionals: [out = '', ...positionals], options }, context) => {
  const { env, cwd, print } = context
  const { as: caller, prune = false } = options
  const config = await readConfig({ positionals, options }, context)
  const { accessFile, publicUrl, linkTargets } = config
  if (caller !== undefined && accessFile === undefined) {
    throw new ConfigError('--as needs an access file: --access FILE')
  }
  const folder = resolve(cwd, out)
  const shutdown = new Shutdown()
  try {
    const onSkipped = skippedWarner(context)
    const { roots: { sources }, trust, skills } = await openSkills(config, { env, shutdown, watcher: false, onSkipped })
    const service: View = accessFile === undefined
      ? skills
      : await openView(skills, accessFile, publicUrl, caller ?? 'anonymous')
    await checkNotServed(folder, 'OUT', [...sources.roots.map(({ path }) => path), ...linkTargets])
    await fetchSources(sources, context)
    await trust?.start()
    if (trust?.problem !== undefined) throw new ConfigError(trust.problem)
    await skills.start()
    await skills.indexed()
    const quarantined = trust?.quarantinedIn(sources.roots.map(({ name }) => name), Infinity)?.first ?? []
    // An empty list does not overwrite an earlier export, unless skills are quarantined.
    if ((await service.list()).length === 0 && quarantined.length === 0) {
      const remedy = caller === undefined ? '; --as NAME exports what another caller sees' : ''
      const reason = accessFile === undefined ? '' : `: ${caller ?? 'anonymous'} sees none by the access file${remedy}`
      throw new ConfigError(`there are no skills to export${reason}`)
    }
    const report = await exportSkills({
      skills: service,
      folder,
      isPublic: caller === undefined || caller === 'anonymous',
      isRestricted: accessFile !== undefined || trust !== undefined,
      prune
    })
    const served = new Set(service.indexedNames())
    const refused = quarantined.filter(({ name }) => !served.has(name))
      .map(({ name, message }) => ({ name, reason: `quarantined: ${message}` }))
    const leftOut = [...report.leftOut, ...refused]
    for (const { name, reason } of leftOut) print(`skipped: ${name}: ${reason}\n`)
    const changes = `${grouped(report.written)} changed, ${grouped(report.removed)} removed`
    print(`${counted(report.skills, 'skill')} in ${grouped(report.files)} files: ${changes}\n`)
    return report.skills === 0 || leftOut.length > 0 ? 1 : 0
  } catch (error) {
    if (error instanceof ExportError) throw new ConfigError(`${quote(out)} ${error.message}`)
    if (error instanceof SkillError) throw new ConfigError(`${error.message} (${config.skillsDirs.join(', ')})`)
    if (!(error instanceof Error && 'syscall' in error && errorCode(error) !== '')) throw error
    const sentence = `cannot write the export: ${quote(out)} cannot be written (${reasonOf(error)})`
    throw new ConfigError(`${sentence}: name another folder to write to`)
  } finally {
    await shutdown.close()
  }
}

/** @throws ConfigError also when the caller is unknown or refused */
async function openView (
  skills: SkillManager, file: string, publicUrl: string | undefined, caller: string
): Promise<View> {
  const text = await readTextFile(file, 'ACCESS_FILE or --access')
  const policy = new Policy(file, text, skills.rootNames, publicUrl)
  const principal = findCaller(policy, caller)
  const refusal = refusalOf(principal)
  if (refusal !== undefined) throw new ConfigError(refusal)
  return skills.createView(caller, policy.grantsOf(principal.view))
}
