import { dirname, resolve, sep } from 'node:path'
import { ConfigError, didYouMean, quote } from '../../operator/setting.ts'
import { replaceListeners } from '../../operator/signals.ts'
import { isHiddenPath } from '../../core/read/hidden.ts'
import { baseName } from '../../core/shared/paths.ts'
import { counted } from '../../core/shared/text.ts'
import { hasColor } from '../../log.ts'
import { isAddress } from '../../sources/address/address.ts'
import { fixAll } from '../../validate/fix.ts'
import { type Baseline, readBaseline, readProjectFile, writeBaseline } from '../../validate/project-file.ts'
import { type FailOn, type Reporter, REPORTERS, type ReportFormat, SEVERITIES } from '../../validate/report.ts'
import { type OpenedSkills, pathInRepository, reaches, validate } from '../../validate/validate-skills.ts'
import { parseTargets, TARGET_WORDS, type TargetName } from '../../verdicts/targets.ts'
import type { CommandContext, RunCommand } from '../command.ts'
import { defaultPath } from '../folders.ts'
import { type ReadOptions, withSkills } from '../with-skills.ts'

/** Exit codes: findings that fail, and wrong use. */
const FOUND = 1
const MISUSE = 2

/** Pause without events before a run, in milliseconds: an editor saves in several steps. */
const QUIET_MS = 100

const CLEAR_SCREEN = '\u001B[2J\u001B[3J\u001B[H'

interface Options extends ReadOptions {
  readonly target?: readonly string[]
  readonly format?: ReportFormat
  readonly failOn?: FailOn | undefined
  readonly maxWarnings?: number | undefined
  readonly quiet?: true
  readonly fix?: true
  readonly dryRun?: true
  readonly watch?: true
  readonly baseline?: string | undefined
  readonly writeBaseline?: true
}

/** Validates skills without starting the service. */
export const run: RunCommand<Options> = async ({ positionals, options }, context) => {
  const chosen = readTargets(options.target)
  const paths = positionals.length === 0 ? [await defaultPath(context.cwd)] : positionals
  if ((options.fix || options.watch) && paths.some(isAddress)) {
    throw new ConfigError(`--${options.watch ? 'watch' : 'fix'} takes folders, not addresses of sources`)
  }
  const validateOnce = async (): Promise<number> => {
    const project = await readProjectFile(paths.find((path) => !isAddress(path)) ?? '.', context.cwd)
    const usesProjectFile = options.baseline === undefined && options.writeBaseline === undefined
    if (usesProjectFile && project.missingBaseline !== undefined) throw project.missingBaseline
    return await withSkills({ positionals: paths, options }, context, async (opened) =>
      await report(opened, { ...project, ...options }, chosen ?? project.targets, context))
  }
  return options.watch ? await watch(paths, validateOnce, context) : await validateOnce()
}

function readTargets (given: readonly string[] | undefined): readonly TargetName[] | undefined {
  const chosen = given === undefined ? undefined : parseTargets(given.join(','))
  if (chosen === undefined || !('unknown' in chosen)) return chosen
  const near = didYouMean(chosen.unknown, TARGET_WORDS)
  throw new ConfigError(`--target must be one of ${TARGET_WORDS.join(', ')}, not ${quote(chosen.unknown)}${near}`)
}

async function report (
  opened: readonly OpenedSkills[], options: Options, targets: readonly TargetName[] | undefined,
  { cwd, env, print, warn, isTerminal = false }: CommandContext
): Promise<number> {
  const { format = 'text', failOn = 'error', maxWarnings = Infinity, baseline: file } = options
  if (options.writeBaseline && file === undefined) throw new ConfigError('--write-baseline needs --baseline FILE')
  if (options.fix) {
    const isFixed = await fixAll(opened, options.dryRun === true, print, warn)
    if (options.dryRun) return isFixed ? FOUND : 0
  }
  const baselineFile = resolve(cwd, file ?? '')
  if (options.writeBaseline) {
    const baseline: Baseline = new Map()
    const reporter: Reporter = {
      skill ({ path, findings }) {
        if (findings.length > 0) baseline.set(resolve(cwd, path), new Set(findings.map(({ code }) => code)))
      }
    }
    const { error, warning, info, skills } = await validate(opened, { targets, reporter })
    await writeBaseline(baselineFile, baseline)
    print(`${counted(error + warning + info, 'finding')} of ${counted(skills, 'skill')} accepted\n`)
    return 0
  }
  const baseline = file === undefined ? undefined : await readBaseline(baselineFile)
  const totals = await validate(opened, {
    targets,
    reporter: REPORTERS[format]({ print, targets, hasColor: isTerminal && hasColor(env) }),
    ...options.quiet && { reportFrom: failOn },
    accepts: (path, code) => baseline?.get(resolve(cwd, path))?.has(code) === true,
    // GitHub shows both next to the files of the repository.
    ...(format === 'github' || format === 'sarif') && {
      reportedPath: (path: string) => pathInRepository(path, cwd, env['GITHUB_WORKSPACE'])
    }
  })
  const fails = SEVERITIES.some((severity) => totals[severity] > 0 && reaches(severity, failOn))
  return fails || totals.warning > maxWarnings ? FOUND : 0
}

/** Reports after each change below the paths, until SIGINT or SIGTERM. The exit code is that of the last report. */
async function watch (
  paths: readonly string[], run: () => Promise<number>, { cwd, print, isTerminal = false }: CommandContext
): Promise<number> {
  const stopped = new Promise((resolve) => {
    const signals = ['SIGINT', 'SIGTERM'] as const
    replaceListeners(signals, () => { for (const signal of signals) process.once(signal, resolve) })
  })
  const roots = paths.map((path) => resolve(cwd, path))
  // If a path is removed and created again, the event is one of the folder above.
  const parents = roots.map(dirname)
  const isInside = (path: string) => roots.some((root) => path.startsWith(root + sep))
  const ignored = (path: string) => !roots.includes(path) && !parents.includes(path) &&
    (!isInside(path) || isHiddenPath([baseName(path)]))
  let code = 0
  let running = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  const reportNow = async (): Promise<void> => {
    if (isTerminal) print(CLEAR_SCREEN)
    code = await run().catch((error: Error) => {
      print(`${error.message}\n`)
      return MISUSE
    })
    print('waiting for changes\n')
  }
  const reportLater = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => { running = running.then(reportNow) }, QUIET_MS)
  }
  const { watch: watchFolders } = await import('chokidar')
  const watcher = watchFolders(parents, { ignoreInitial: true, ignored })
  // What changed before the watcher was ready caused no event, and an error may be of one folder.
  watcher.on('ready', reportLater).on('all', reportLater).on('error', reportLater)
  reportLater()
  await stopped
  clearTimeout(timer)
  await watcher.close()
  await running
  return code
}
