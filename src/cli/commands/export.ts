import { resolve } from 'node:path'
import { counted, grouped } from '../../core/shared/text.ts'
import { isWithin, realPathOf, whyUnwritable } from '../../config/files/files.ts'
import { quote } from '../../config/setting.ts'
import type { Config } from '../../config/settings.ts'
import type { SkillManager, SkillManagerOptions } from '../../core/skill-manager.ts'
import type { SkillService } from '../../core/service.ts'
import { Shutdown } from '../../http/shutdown.ts'
import { type Arguments, type CommandContext, CommandError, type RunCommand } from '../command.ts'
import { fetchSources, namingSkipped, readConfig } from '../folders.ts'
import { showing } from '../progress.ts'

/** Writes skills as static files. */
export const run: RunCommand = async (args, context) => {
  return await namingSkipped(context, async (onSkipped) => await runExport(args, context, onSkipped))
}

async function runExport (
  { positionals: [out = '', ...positionals], flags }: Arguments, context: CommandContext,
  onSkipped: SkillManagerOptions['onSkipped']
): Promise<number> {
  const { env, cwd, print, progress } = context
  const caller = flags.get('as')?.at(-1)
  const config = await readConfig({ positionals, flags }, context)
  const isRestricted = config.accessFile !== undefined
  if (caller !== undefined && !isRestricted) throw new CommandError('--as needs an access file: --access FILE')
  const folder = resolve(cwd, out)
  const { openRoots } = await import('../../config/roots.ts')
  const { openTrust } = await import('../../trust/trust.ts')
  const { SILENT } = await import('../../core/shared/log.ts')
  const { ExportError, exportSkills } = await import('../../export/export-skills.ts')
  const { SkillError } = await import('../../core/shared/errors.ts')
  const found = await openRoots(config, { log: SILENT, env })
  const { sources, ...roots } = found
  const shutdown = new Shutdown()
  shutdown.add(() => sources?.close())
  const paths = [...roots.projectRoots, ...roots.personalRoot ? [roots.personalRoot] : []].map(({ path }) => path)
  try {
    const trust = await openTrust(config, found, SILENT)
    shutdown.add(() => trust?.close())
    const { linkTargets } = config
    const options = { ...roots, ...trust?.guarded(roots), linkTargets, watcher: false, onSkipped } as const
    const { skills, service } = await openSkills(options, config, caller ?? 'anonymous')
    shutdown.add(() => skills.close())
    const quarantined = new Map<string, string>()
    trust?.on('verdict', ({ skill, isServed, reason }) => {
      if (isServed) quarantined.delete(skill)
      else quarantined.set(skill, reason?.message ?? 'it is not served')
    })
    await checkApart(folder, paths)
    await fetchSources(sources, context)
    await trust?.start()
    await skills.start()
    await skills.available()
    // An export that is there stays, unless all of its skills were refused.
    if ((await service.list()).length === 0 && quarantined.size === 0) {
      const remedy = caller === undefined ? ', --as NAME exports what another caller sees' : ''
      const reason = isRestricted ? `: ${caller ?? 'anonymous'} sees none by the access file${remedy}` : ''
      throw new CommandError(`there are no skills to export${reason}`)
    }
    const report = await exportSkills({
      skills: service,
      folder,
      isPublic: caller === undefined || caller === 'anonymous',
      isRestricted: isRestricted || trust !== undefined,
      prune: flags.has('prune'),
      onProgress: showing(progress, 'skill')
    })
    const served = new Set(service.namesNow())
    const refused = [...quarantined].filter(([name]) => !served.has(name))
      .map(([name, reason]) => ({ name, reason: `quarantined: ${reason}` }))
    const leftOut = [...report.leftOut, ...refused]
    for (const { name, reason } of leftOut) print(`left out: ${name}: ${reason}\n`)
    const changes = `${grouped(report.written)} changed, ${grouped(report.removed)} removed`
    print(`${counted(report.skills, 'skill')} in ${grouped(report.files)} files: ${changes}\n`)
    if (report.skills === 0) return 1
    return leftOut.length > 0 ? 2 : 0
  } catch (error) {
    if (error instanceof ExportError) throw new CommandError(`${quote(out)} ${error.message}`)
    if (error instanceof SkillError) {
      const places = error.code === 'skills_folder_permission_denied' ? `: ${paths.join(', ')}` : ''
      throw new CommandError(`${error.message}${places}`)
    }
    if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error
    const isBelowFile = error.code === 'ENOTDIR'
    const reason = isBelowFile ? 'is not a folder, or is below a file' : `cannot be written (${whyUnwritable(error)})`
    throw new CommandError(`cannot write the export: ${quote(out)} ${reason}: name another folder to write to`)
  } finally {
    await shutdown.close()
  }
}

/** All skills; with an access file, those that one caller sees. */
async function openSkills (options: SkillManagerOptions, { accessFile, publicUrl }: Config, caller: string): Promise<{
  readonly skills: Pick<SkillManager, 'start' | 'close'> & { available (): Promise<unknown> }
  readonly service: SkillService
}> {
  if (accessFile !== undefined) {
    const { openViewOf } = await import('../../access/report.ts')
    return await openViewOf(options, accessFile, publicUrl, caller)
  }
  const { createSkillManager } = await import('../../core/skill-manager.ts')
  const skills = createSkillManager(options)
  return { skills, service: skills }
}

/** Nothing is ever written into a folder of skills, and no export is served as a skill. */
async function checkApart (folder: string, roots: readonly string[]): Promise<void> {
  const out = await realPathOf(folder)
  for (const root of roots) {
    const path = await realPathOf(root)
    if (!isWithin(out, path) && !isWithin(path, out)) continue
    const both = `${quote(folder)} and the skills folder ${quote(root)}`
    throw new CommandError(`${both} must be apart: name another folder to write to`)
  }
}
