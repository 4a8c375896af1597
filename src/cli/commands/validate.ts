import { basename, resolve } from 'node:path'
import { ConfigError, didYouMean, quote } from '../../config/setting.ts'
import { hasColor } from '../../log.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { FindingSeverity } from '../../core/shared/skill.ts'
import { counted } from '../../core/shared/text.ts'
import { isAddress } from '../../sources/address/address.ts'
import type { ProjectChoices } from '../../validate/project-file.ts'
import type { Place } from '../../validate/with-skills.ts'
import { TARGET_NAMES, type TargetName, parseTargets } from '../../verdicts/targets.ts'
import { type Arguments, type CommandContext, CommandError, type RunCommand } from '../command.ts'
import { namingSkipped, readLinkTargets, withRoots } from '../folders.ts'
import { readPackageVersion } from '../package-files.ts'
import { showing } from '../progress.ts'

type Format = 'text' | 'json' | 'sarif' | 'github'
type FailOn = 'error' | 'warning' | 'info' | 'never'

const DEFAULT_PATH = './skills'

/** What scripts tell apart: findings, wrong use, and a fault of this program. */
const FOUND = 1
const MISUSE = 2
const FAULT = 3

const CLEAR_SCREEN = '\u001B[2J\u001B[3J\u001B[H'

/** Validates skills without starting the service. */
export const run: RunCommand = async (args, context) => {
  const all = args.positionals.length === 0 ? [DEFAULT_PATH] : args.positionals
  const layout = args.flags.get('layout')?.at(-1) ?? context.env['LAYOUT'] ?? 'flat'
  // A SKILL.md is one skill in any layout.
  const roots = all.filter((path) => isAddress(path) || (layout !== 'flat' && !isMainFile(basename(path))))
  const paths = all.filter((path) => !roots.includes(path))
  const flags = readFlags(args, context)
  try {
    const { readProjectFile } = await import('../../validate/project-file.ts')
    const options = withDefaults(flags, await readProjectFile(all.find((path) => !isAddress(path)) ?? '.', context.cwd))
    if (options.writesBaseline && options.baseline === undefined) {
      throw new CommandError('--write-baseline needs --baseline FILE')
    }
    if ((options.fix !== 'no' || options.isWatching) && all.some(isAddress)) {
      throw new CommandError(
        `--${options.isWatching ? 'watch' : 'fix'} is for folders, and not for addresses of sources`
      )
    }
    const validateOnce = () =>
      roots.length > 0 ? judgeRoots(roots, paths, options, args, context) : judge(paths, options, context)
    return options.isWatching ? await watch(all, validateOnce, context) : await validateOnce()
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw await isMisuse(error)
      ? new CommandError(messageOf(error))
      : new CommandError(`validate failed: ${messageOf(error)}`, FAULT)
  }
}

interface Flags {
  readonly targets: readonly TargetName[] | undefined
  readonly format: Format
  readonly failOn: FailOn | undefined
  readonly maxWarnings: number | undefined
  readonly baseline: string | undefined
  readonly isQuiet: boolean
  readonly isWatching: boolean
  readonly writesBaseline: boolean
  readonly fix: 'no' | 'dry' | 'write'
  /** Absolute paths. */
  readonly linkTargets: readonly string[] | undefined
}

type Options = Flags & Required<Pick<ProjectChoices, 'failOn' | 'maxWarnings'>>

function readFlags ({ flags }: Arguments, context: CommandContext): Flags {
  const last = (name: string): string | undefined => flags.get(name)?.at(-1)
  const maxWarnings = last('max-warnings')
  if (maxWarnings !== undefined && !/^\d{1,9}$/.test(maxWarnings)) {
    throw new CommandError(`--max-warnings must be a whole number, not ${quote(maxWarnings)}`)
  }
  // The command line has checked the words.
  const format = (last('format') ?? 'text') as Format
  if (flags.has('dry-run') && !flags.has('fix')) throw new CommandError('--dry-run needs --fix')
  const unfit = ['fix', 'write-baseline'].find((flag) => flags.has(flag))
  if (flags.has('watch') && (unfit !== undefined || format !== 'text')) {
    throw new CommandError(`--watch cannot be combined with --${unfit ?? `format ${format}`}`)
  }
  return {
    targets: readTargets(flags.get('target')?.join(',')),
    format,
    failOn: last('fail-on') as FailOn | undefined,
    maxWarnings: maxWarnings === undefined ? undefined : Number(maxWarnings),
    baseline: last('baseline'),
    isQuiet: flags.has('quiet'),
    isWatching: flags.has('watch'),
    writesBaseline: flags.has('write-baseline'),
    fix: !flags.has('fix') ? 'no' : flags.has('dry-run') ? 'dry' : 'write',
    linkTargets: readLinkTargets({ flags }, context)
  }
}

function readTargets (text: string | undefined): readonly TargetName[] | undefined {
  const chosen = text === undefined ? undefined : parseTargets(text)
  if (chosen !== undefined && 'unknown' in chosen) {
    throw new CommandError(`--target has ${quote(chosen.unknown)}, ` +
    `there are ${TARGET_NAMES.join(', ')}, all${didYouMean(chosen.unknown, TARGET_NAMES)}`)
  }
  return chosen
}

function withDefaults (flags: Flags, project: ProjectChoices): Options {
  return {
    ...flags,
    targets: flags.targets ?? project.targets,
    failOn: flags.failOn ?? project.failOn ?? 'error',
    maxWarnings: flags.maxWarnings ?? project.maxWarnings ?? Infinity,
    baseline: flags.baseline ?? project.baseline
  }
}

async function isMisuse (error: unknown): Promise<boolean> {
  const { PathError } = await import('../../validate/with-skills.ts')
  return error instanceof PathError || error instanceof ConfigError
}

function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The exit code is that of the last report. */
async function watch (paths: readonly string[], run: () => Promise<number>, context: CommandContext): Promise<number> {
  const { runOnChanges } = await import('../../validate/watch.ts')
  const stop = new AbortController()
  const onSignal = (): void => {
    stop.abort()
    context.endBySignal?.(FAULT)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal)
  context.endBySignal?.(undefined)
  let code = 0
  await runOnChanges(paths, context.cwd, async () => {
    if (context.isTerminal === true) context.print(CLEAR_SCREEN)
    try {
      code = await run()
    } catch (error) {
      code = await isMisuse(error) ? MISUSE : FAULT
      context.print(`${messageOf(error)}\n`)
    }
    context.print('waiting for changes\n')
  }, stop.signal)
  return code
}

/** Of a folder with a layout, and of a source, the skills are those that `serve` would find. */
async function judgeRoots (
  texts: readonly string[], paths: readonly string[], options: Options, args: Arguments, context: CommandContext
): Promise<number> {
  return await withRoots({ ...args, positionals: texts }, context, ({ projectRoots }) =>
    judge(paths, options, context, projectRoots.map((root, index): Place => {
      const path = texts[index] ?? root.path
      return { root, path, isFetched: isAddress(path) }
    })))
}

async function judge (
  paths: readonly string[], options: Options, context: CommandContext, roots: readonly Place[] = []
): Promise<number> {
  const { cwd, env, print, warn, progress, isTerminal = false } = context
  const { targets, format, failOn, maxWarnings, isQuiet, baseline, writesBaseline, linkTargets } = options
  const [{ placeOf }, { validate, reaches }, { mcpFindings }, {
    baselineKeys, readBaseline, writeBaseline
  }, { createReporter, collecting }] = await Promise.all([
    import('../../validate/with-skills.ts'), import('../../validate/validate.ts'), import('../../mcp/findings.ts'),
    import('../../validate/baseline.ts'),
    import('../../validate/report/index.ts')
  ])
  const places = [...await Promise.all(paths.map((path) => placeOf(path, cwd))), ...roots]
  if (options.fix !== 'no') {
    const { fixAll } = await import('../../validate/fix.ts')
    const { diffs, notes } = await fixAll(places, { linkTargets }, cwd, options.fix === 'dry')
    for (const sentence of notes) warn(sentence)
    if (options.fix === 'dry') {
      print(diffs.join(''))
      return diffs.length > 0 ? FOUND : 0
    }
  }
  const reporter = createReporter(
    format, { print, targets, hasColor: isTerminal && hasColor(env), version: readPackageVersion() }
  )
  const found = new Map<string, Set<string>>()
  const file = baseline === undefined ? undefined : resolve(cwd, baseline)
  const keyOf = baselineKeys(file ??
    cwd, cwd, roots.flatMap(({ root: { name }, isFetched }) => isFetched === true && name !== undefined ? name : []))
  const totals = await namingSkipped(context, (onSkipped) => validate({
    places,
    cwd,
    linkTargets,
    onSkipped,
    targets,
    onProgress: showing(progress, 'skill'),
    sources: [mcpFindings],
    reporter: writesBaseline ? collecting(found) : reporter,
    ...isQuiet && !writesBaseline && { reportFrom: failOn },
    baseline: file === undefined || writesBaseline ? undefined : readBaseline(file, keyOf)
  }))
  if (writesBaseline && file !== undefined) {
    await writeBaseline(file, found, keyOf)
    print(`${counted(totals.error + totals.warning + totals.info, 'finding')} of ${counted(totals.skills, 'skill')} ` +
      'accepted\n')
    return 0
  }
  const fails = (['error', 'warning', 'info'] as const satisfies readonly FindingSeverity[]).some((severity) =>
    totals[severity] > 0 && reaches(severity, failOn))
  return fails || totals.warning > maxWarnings ? FOUND : 0
}
