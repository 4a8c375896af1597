import { resolve } from 'node:path'
import { quote } from '../../config/setting.ts'
import type { RootOptions } from '../../core/catalog/root-reports.ts'
import type { FindingSeverity } from '../../core/ground/skill.ts'
import type { Totals } from '../../validate/report/reporter.ts'
import type { NamedFolder } from '../../validate/validate.ts'
import type { TargetName } from '../../verdicts/index.ts'
import type { Arguments } from '../arguments.ts'
import { type Command, CommandError } from '../command.ts'
import { isAddress } from '../../sources/address/address.ts'
import { readPackageVersion } from '../package-files.ts'
import { ROOT_FLAGS, withRoots } from '../roots.ts'

const FORMATS = ['text', 'json', 'sarif', 'github'] as const
const FAIL_ON = ['error', 'warning', 'info', 'never'] as const
const DEFAULT_PATH = './skills'

/** What scripts tell apart: findings, wrong use, and a fault of this program. */
const FOUND = 1
const MISUSE = 2
const FAULT = 3

/** Judges skills without starting the service. */
export const command: Command = {
  summary: 'judges skills for agents, validators and uploads',
  positionals: '[PATH...]',
  flags: ['target', 'format', 'fail-on', 'max-warnings', 'baseline', ...ROOT_FLAGS],
  switches: ['quiet', 'write-baseline', 'fix', 'dry-run'],
  misuse: MISUSE,
  details: () => `PATH is a folder of skills, a skill, a SKILL.md, or the address of a source; default ${DEFAULT_PATH}.

  --target T,...      what to judge for: spec (the default), codex, claude-code, ... or all
  --format FORMAT     text (the default), json, sarif, or github for annotations of GitHub Actions
  --fail-on SEVERITY  error (the default), warning, info or never
  --max-warnings N    fails with more warnings than N
  --quiet             reports only what fails
  --fix               mends what is certain in SKILL.md, and reports the rest
  --dry-run           with --fix: prints the changes, and writes nothing
  --layout LAYOUT     where skills lie in the sources of addresses, as for serve; --state-dir as well
  --baseline FILE     accepts the findings in FILE
  --write-baseline    writes all findings there are into that FILE

Exits with ${0} when nothing fails, with ${FOUND} when something does, with ${MISUSE} for wrong use and for a path without skills, with ${FAULT} after a fault of
this program.
`,
  async run (args, context) {
    const { cwd, env, print, isTerminal = false } = context
    const options = readOptions(args)
    const { TARGET_NAMES, parseTargets } = await import('../../verdicts/index.ts')
    const chosen = options.target === undefined ? undefined : parseTargets(options.target)
    if (chosen !== undefined && 'unknown' in chosen) throw new CommandError(`--target has ${quote(chosen.unknown)}, there are ${TARGET_NAMES.join(', ')}, all`)
    try {
      const output = { cwd, print, hasColor: isTerminal && (env['NO_COLOR'] ?? '') === '' }
      const addresses = args.positionals.filter(isAddress)
      const paths = args.positionals.length === 0 ? [DEFAULT_PATH] : args.positionals.filter((path) => !isAddress(path))
      if (addresses.length === 0) return await judge(paths, [], options, chosen, output)
      if (options.fix !== 'no') throw new CommandError('--fix mends folders, and no sources: mend them where they come from')
      return await withRoots(addresses, args, context, ({ projectRoots }) => judge(paths, projectRoots.flatMap((root) => foldersOf(root)), options, chosen, output))
    } catch (error) {
      if (error instanceof CommandError) throw error
      const { PathError } = await import('../../validate/skills.ts')
      if (error instanceof PathError) throw new CommandError(error.message)
      throw new CommandError(`validate failed: ${error instanceof Error ? error.message : String(error)}`, FAULT)
    }
  }
}

interface Options {
  readonly target: string | undefined
  readonly format: typeof FORMATS[number]
  readonly failOn: typeof FAIL_ON[number]
  readonly maxWarnings: number
  readonly baseline: string | undefined
  readonly isQuiet: boolean
  readonly writesBaseline: boolean
  readonly fix: 'no' | 'dry' | 'write'
}

function readOptions ({ flags }: Arguments): Options {
  const last = (name: string): string | undefined => flags.get(name)?.at(-1)
  const maxWarnings = last('max-warnings')
  if (maxWarnings !== undefined && !/^\d{1,9}$/.test(maxWarnings)) throw new CommandError(`--max-warnings must be a whole number, not ${quote(maxWarnings)}`)
  const options = {
    target: flags.get('target')?.join(','),
    format: oneOf('format', last('format') ?? 'text', FORMATS),
    failOn: oneOf('fail-on', last('fail-on') ?? 'error', FAIL_ON),
    maxWarnings: maxWarnings === undefined ? Infinity : Number(maxWarnings),
    baseline: last('baseline'),
    isQuiet: flags.has('quiet'),
    writesBaseline: flags.has('write-baseline'),
    fix: !flags.has('fix') ? 'no' as const : flags.has('dry-run') ? 'dry' as const : 'write' as const
  }
  if (flags.has('dry-run') && !flags.has('fix')) throw new CommandError('--dry-run needs --fix')
  if (options.writesBaseline && options.baseline === undefined) throw new CommandError('--write-baseline needs --baseline FILE')
  return options
}

function oneOf<Value extends string> (flag: string, text: string, values: readonly Value[]): Value {
  const value = values.find((each) => each === text)
  if (value === undefined) throw new CommandError(`--${flag} must be one of ${values.join(', ')}, not ${quote(text)}`)
  return value
}

interface Output {
  readonly cwd: string
  readonly print: (text: string) => void
  readonly hasColor: boolean
}

/** The skills of a source, called as if they lay in a folder of its name. */
function foldersOf ({ name = '', listed }: RootOptions): NamedFolder[] {
  return [...listed?.folders ?? []].map(([skill, { path, realPath }]) => [`${name}/${skill}`, { name: skill, type: 'project', root: 0, path, realPath, linked: false }])
}

async function judge (paths: readonly string[], folders: readonly NamedFolder[], options: Options, targets: readonly TargetName[] | undefined, { cwd, print, hasColor }: Output): Promise<number> {
  const { validate, reaches } = await import('../../validate/validate.ts')
  const { mcpFindings } = await import('../../mcp/findings.ts')
  const { readBaseline, writeBaseline } = await import('../../validate/baseline.ts')
  const { createReporter, collecting } = await import('../../validate/report/index.ts')
  const { format, failOn, maxWarnings, isQuiet, baseline, writesBaseline } = options
  if (options.fix !== 'no') {
    const { fixAll } = await import('../../validate/fix-all.ts')
    const diffs = await fixAll(paths, cwd, options.fix === 'dry')
    if (options.fix === 'dry') {
      print(diffs.join(''))
      return diffs.length > 0 ? FOUND : 0
    }
  }
  const reporter = createReporter(format, { print, targets, hasColor, version: readPackageVersion() })
  const found = new Map<string, Set<string>>()
  const file = baseline === undefined ? undefined : resolve(cwd, baseline)
  const totals = await validate({
    paths,
    cwd,
    folders,
    targets,
    sources: [mcpFindings],
    reporter: writesBaseline ? collecting(found, print) : reporter,
    ...isQuiet && !writesBaseline && { reportFrom: failOn },
    baseline: file === undefined || writesBaseline ? undefined : readBaseline(file)
  })
  if (writesBaseline && file !== undefined) {
    writeBaseline(file, found)
    return 0
  }
  const fails = (['error', 'warning', 'info'] as const satisfies readonly FindingSeverity[]).some((severity) => hasAny(totals, severity) && reaches(severity, failOn))
  return fails || totals.warning > maxWarnings ? FOUND : 0
}

function hasAny (totals: Totals, severity: FindingSeverity): boolean {
  return totals[severity] > 0
}
