import { realpath } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { loadConfig, settingFlags } from '../../config/load.ts'
import { quote } from '../../config/setting.ts'
import { type Command, CommandError } from '../command.ts'
import { checkSkillsFolder } from '../folders.ts'

/** Flags of `serve` that say which skills there are. */
const FOLDER_FLAGS = settingFlags().filter((flag) => ['personal', 'config', 'state-dir', 'layout', 'allow-links'].includes(flag))

/** Writes skills as static files. */
export const command: Command = {
  summary: 'writes skills as files for any static web server',
  positionals: 'OUT [DIR...]',
  flags: FOLDER_FLAGS,
  switches: ['prune'],
  details: () => `Writes the documents of skill discovery and all that they list below OUT, for npx skills add and other clients.
Skills come from DIR, which may be an address of a source, or from what serve would take (${FOLDER_FLAGS.map((flag) => `--${flag}`).join(', ')} and\ntheir variables). What did not change is not written again.

  --prune  remove what earlier exports wrote for clients with an earlier index, too

Exits with 0 when every skill is in the export; with 2 when some are not, each with a line that says why; with 1 when nothing
could be exported.
`,
  async run ({ positionals: [out, ...folders], flags }, { commands, env, cwd, print }) {
    if (out === undefined || out === '') throw new CommandError('export needs the folder to write to: skillserve export OUT [DIR...]')
    for (const folder of folders) await checkSkillsFolder(folder, cwd, commands, flags.get('layout')?.at(-1) ?? env['LAYOUT'])
    const config = loadConfig({ positionals: folders, flags, env, cwd })
    const folder = resolve(cwd, out)
    const [{ createSkillManager }, { openRoots }, { SILENT }, { ExportError, exportSkills }, { SkillError }] = await Promise.all([
      import('../../core/skill-manager.ts'), import('../../config/roots.ts'), import('../../core/ground/log.ts'), import('../../export/export-skills.ts'), import('../../core/ground/errors.ts')
    ])
    const isFileOnly = folders.length === 0 && !env['SKILLS_DIR'] && config.configFile !== undefined
    const { sources, ...roots } = await openRoots(isFileOnly ? { ...config, skillsDirs: [] } : config, { log: SILENT })
    const skills = createSkillManager({ ...roots, ...config.linkTargets && { linkTargets: config.linkTargets }, watcher: false })
    try {
      await checkApart(folder, [...roots.projectRoots, ...roots.personalRoot ? [roots.personalRoot] : []].map(({ path }) => path))
      await sources?.sync()
      await skills.initialize()
      const report = await exportSkills({ skills, folder, prune: flags.has('prune') })
      for (const { name, reason } of report.leftOut) print(`left out: ${name}: ${reason}\n`)
      print(`${report.skills} skills in ${report.files} files: ${report.written} changed, ${report.removed} removed\n`)
      return report.leftOut.length > 0 ? 2 : 0
    } catch (error) {
      if (error instanceof ExportError) throw new CommandError(`${quote(out)} ${error.message}`)
      if (error instanceof SkillError) throw new CommandError(error.message)
      if (error instanceof Error && 'syscall' in error) throw new CommandError(`cannot write the export: ${error.message}`)
      throw error
    } finally {
      await sources?.close()
      await skills.close()
    }
  }
}

/** Nothing is ever written into a folder of skills, and no export is served as a skill. */
async function checkApart (folder: string, roots: readonly string[]): Promise<void> {
  const out = await realPathOf(folder)
  for (const root of roots) {
    const path = await realPathOf(root)
    if (isWithin(out, path) || isWithin(path, out)) throw new CommandError(`${quote(folder)} and the skills folder ${quote(root)} must be apart: name another folder to write to`)
  }
}

async function realPathOf (path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : resolve(await realPathOf(parent), path.slice(parent.length).replace(/^[/\\]+/, ''))
  }
}

function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
