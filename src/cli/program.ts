import { Command, InvalidArgumentError, Option } from 'commander'
import { SCOPES } from '../http/callers.ts'
import { versionText } from '../operator/package-files.ts'
import { ConfigError, didYouMean, type Setting } from '../operator/setting.ts'
import { type SettingName, SETTINGS } from '../config/settings.ts'
import type { FailOn, ReportFormat } from '../validate/report.ts'
import { TARGET_WORDS } from '../verdicts/targets.ts'
import type { Arguments, RunCommand } from './command.ts'

/** A command with any options. `createProgram` declares which ones it has. */
type AnyCommand = RunCommand<never>

const HELP_WIDTH = 80

/** Settings that say where skills are. */
const FOLDERS = ['personalDir', 'linkTargets', 'configFile', 'stateDir', 'layout'] as const
const READING = ['linkTargets', 'stateDir', 'layout'] as const
const FORMATS = ['text', 'json', 'sarif', 'github'] satisfies ReportFormat[]
const FAIL_ON = ['error', 'warning', 'info', 'never'] satisfies FailOn[]
const ALL = Object.keys(SETTINGS) as readonly SettingName[]

/**
 * Creates the command line. A new command needs an entry here, and a file with its `run`, which is imported on call.
 * @param start runs a command with its arguments
 */
export function createProgram (
  print: (text: string) => void, start: (run: AnyCommand, args: Arguments<never>) => Promise<void>
): Command {
  const program = new Command('skillserve')
    .description('Serves folders of Agent Skills over HTTP.')
    .version(versionText(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .configureHelp({
      helpWidth: HELP_WIDTH,
      optionDescription: ({ description }) => description,
      argumentDescription: ({ description }) => description
    })
    .configureOutput({ writeOut: print, writeErr () {}, outputError () {} })
    .exitOverride()
    .addHelpText('after', `
\`skillserve help serve\` lists the settings of the service.
A folder that is named like a command is ./NAME.`)

  function add (
    usage: string, summary: string, load: () => Promise<{ readonly run: AnyCommand }>,
    settings: readonly SettingName[] = []
  ): Command {
    const command = program.command(usage, { isDefault: usage.startsWith('serve') })
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .action(async function (this: Command) {
        await start((await load()).run, { positionals: this.args, options: this.opts<never>() })
      })
    for (const name of settings) addSetting(command, SETTINGS[name])
    return command
  }

  add('serve [DIR...]', 'serve folders of skills over HTTP (the default)', () => import('./commands/serve.ts'), ALL)
    .addHelpText('after', ({ command }) => variablesHelp(command))
    .addHelpText('after', `
Flags override the environment, the environment overrides defaults. The access file, the trust file and the lock are
read again within two seconds of a change, and at SIGHUP, which also reads --config again, checks the sources and
reopens the audit log.
Exits with 0 after SIGTERM or SIGINT, with 1 for a setting that cannot be used and after an unexpected error.`)

  add('dev [DIR...]', 'preview folders of skills, or one skill, while they are written',
    () => import('./commands/dev.ts'), ['port', 'linkTargets', 'layout', 'stateDir'])
    .option('--no-open', 'print the address only; otherwise a browser opens it, where there is a desktop')
    .addHelpText('after', `
DIR is as for validate: default ./skills, else the skill or the folder of skills that you are in.
Serves the folders on this machine only. An open page reloads when what it shows is saved; findings and token counts
of each skill that is saved are printed here. Exits with 0 after SIGTERM or SIGINT.`)

  add('mcp [DIR...]', 'serve MCP over standard input and output', () => import('./commands/mcp.ts'),
    [...FOLDERS, 'lockFile', 'trustFile', 'logLevel'])
    .addHelpText('after', `
For hosts that start a command. The log is on standard error. Exits with 0 when the host closes its end.`)

  add('init <NAME>', 'write a new skill from a short template', () => import('./commands/init.ts'))
    .addHelpText('after', `
NAME is the folder to make, such as skills/my-skill. Exits with 1 when it has a SKILL.md already.`)

  const target = new Option('--target <T,...>',
    'what to validate for: spec (the default), codex, claude-code, ... or all').argParser(collect)
  target.argChoices = [...TARGET_WORDS]
  const watch = new Option('--watch', 'report again after each change, until SIGINT or SIGTERM')
    .conflicts(['format', 'fix', 'writeBaseline'])
  add('validate [PATH...]', 'validate skills for agents, validators and uploads',
    () => import('./commands/validate.ts'), READING)
    .addOption(target)
    .addOption(new Option('--format <FORMAT>',
      'text (the default), json, sarif, or github for annotations of GitHub Actions').choices(FORMATS))
    .addOption(new Option('--fail-on <SEVERITY>', 'error (the default), warning, info or never').choices(FAIL_ON))
    .option('--max-warnings <N>', 'fail with more warnings than N', parseCount)
    .option('--quiet', 'report only what fails')
    .option('--fix', 'fix what is certain in SKILL.md, and report the rest')
    .addOption(new Option('--dry-run', 'print what --fix would change, and write nothing').implies({ fix: true }))
    .addOption(watch)
    .option('--baseline <FILE>', 'accept the findings in FILE')
    .option('--write-baseline', 'accept all current findings: write them to the baseline file')
    .addHelpText('after', `
PATH is a folder of skills, a skill, a SKILL.md, or the address of a source; default ./skills, else the skill or the
folder of skills that you are in. A file .skillserve.yaml next to the skills, or above them up to the working folder,
may set targets, fail_on, max_warnings and baseline. Flags override it.

Exits with 0 when nothing fails, with 1 when something does, with 2 for wrong use and for a path without skills, with 3
after an internal error.`)

  add('lock [DIR...]', 'write the present revisions of skills to a file, for serve --locked',
    () => import('./commands/lock.ts'), ['configFile', ...READING])
    .option('--out <FILE>', 'the file to write; default skills.lock')
    .addHelpText('after', `
Prints what changed since the file before. Exits with 1, and writes nothing, when a folder or a skill cannot be read.`)

  add('sign <DIR>', 'sign a skill, or all skills of a folder', () => import('./commands/sign.ts'), ['linkTargets'])
    .requiredOption('--key <FILE>', 'private key (PEM; P-256, P-384 or P-521) without a password')
    .option('--chain <FILE>', 'certificates (PEM) to be put into the signature, that of the key first')
    .addHelpText('after', `
Writes skill.oms.sig, in the format of OpenSSF Model Signing 1.0, into each skill.`)

  add('verify <DIR...>', 'check the signatures of skills', () => import('./commands/verify.ts'), READING)
    .option('--trust <FILE>', 'the trust file')
    .option('--locked <FILE>',
      'a lock: accept its revisions only, and require each of its skills, unless DIR is a skill')
    .option('--json', 'print JSON instead of lines')
    .addHelpText('after', `
DIR is a skill, a folder of skills, or the address of a source. Exits with 0 when a service with these files and require
would serve every skill of the folders and of the lock, with 1 otherwise.`)

  add('token <NAME>', 'make a token or a link for the access file', () => import('./commands/token.ts'))
    .option('--group <GROUP>', 'group to put the holder in (repeatable)', collect)
    .option('--scope <SCOPE>', 'scope to grant (repeatable); default skills:read', collectScopes)
    .option('--expires <WHEN>', '30d, or a date such as 2027-03-01; default: never')
    .option('--link', 'a secret path for clients of discovery that cannot send a header')
    .addHelpText('after', `
Prints the secret once (it cannot be shown again) and the line for the access file.`)

  add('access <FILE> [DIR...]', 'list who sees what by an access file', () => import('./commands/access.ts'), FOLDERS)
    .addOption(new Option('--as <NAME>',
      'what the holder of this token or link sees, and by which rule; anonymous, or group:G').conflicts('skill'))
    .option('--skill <SKILL>', 'who sees this skill, in each folder that has it')
    .addHelpText('after', `
DIR as for \`serve\`. Without --as or --skill, prints a table: which skills each caller sees. Exits with 1 when the file
cannot be used, or there is no such token, link or skill.`)

  add('export <OUT> [DIR...]', 'write skills as files for any static web server', () => import('./commands/export.ts'),
    [...FOLDERS, 'accessFile', 'lockFile', 'trustFile'])
    .option('--as <NAME>', 'with an access file: what this token, link or group:G sees; default anonymous')
    .option('--prune', 'also delete files that only older indexes refer to')
    .addHelpText('after', `
Writes the documents of skill discovery and all that they list below OUT. What did not change is not written again.
Exits with 0 when every skill is in the export, with 1 otherwise.`)

  add('sync [DIR...]', 'fetch sources into the state folder, and end', () => import('./commands/sync.ts'),
    ['personalDir', 'configFile', 'stateDir', 'layout', 'trustFile'])
    .option('--once', 'sync once and exit (default)')
    .addHelpText('after', `
Exits with 0 when every source that is not optional was fetched, with 1 otherwise: a failed one keeps its last state.`)

  add('usage <AUDIT_LOG...>', 'count the reads of skills in audit logs', () => import('./commands/usage.ts'))
    .option('--roots <DIR>', 'also name the skills of this folder that nobody read (repeatable)', collect)
    .addOption(new Option('--by <UNIT>', 'count each day separately').choices(['day']))
    .addOption(new Option('--format <FORMAT>', 'how to print').choices(['text', 'json', 'csv']).default('text'))
    .addHelpText('after', `
Logs may be rotated, and compressed with gzip (.gz). Counts reads by skill, searches without a result, and refusals.`)

  add('config [DIR...]', 'print the settings of serve, and where each comes from',
    () => import('./commands/config.ts'), ALL)
    .addHelpText('after', `
Reads the files that settings name, too. Secrets are not printed. Exits with 1 and a line for each mistake.`)

  add('healthcheck', 'ask a running service whether it is ready', () => import('./commands/healthcheck.ts'),
    ['host', 'port', 'basePath'])
    .addHelpText('after', `
Asks GET /readyz at these, and for the first of ALLOWED_HOSTS. Exits with 0 when the service is
ready; with 1 and a line that says why when it is not.`)

  const completion = async () => (await import('./commands/completion.ts')).completionOf(program)
  add('completion', 'print a completion script for bash or zsh', completion)
    .addArgument(program.createArgument('<SHELL>', 'the shell').choices(['bash', 'zsh']))
    .addHelpText('after', `
bash  source <(skillserve completion bash)
zsh   source <(skillserve completion zsh)`)

  program.command('help [COMMAND]').summary('show help for skillserve or a command').action((name = program.name()) => {
    const { commands } = program
    const command = [program, ...commands].find((each) => each.name() === name)
    if (command !== undefined) return command.outputHelp()
    const names = commands.map((each) => each.name())
    throw new ConfigError(`there is no command "${name}"${didYouMean(name, names)} (commands: ${names.join(', ')})`)
  })
  program.command('version').summary('print the version').action(() => { print(`${versionText()}\n`) })
  return program
}

/** Collects the values of a repeated flag. */
function collect (value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

function collectScopes (value: string, before: readonly string[] = []): readonly string[] {
  if (SCOPES.some((scope) => scope === value)) return [...before, value]
  throw new InvalidArgumentError(`Allowed choices are ${SCOPES.join(', ')}${didYouMean(value, SCOPES)}`)
}

function parseCount (value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value)
  throw new InvalidArgumentError('It must be a whole number.')
}

/** Adds the flag of a setting, if it has one. Its value is checked later, with the environment. */
function addSetting (command: Command, setting: Setting): void {
  const { argument = '', alone, separator, words } = setting
  if (!argument.startsWith('--')) return
  const option = new Option(argument.replace(/ (\w+)$/, ' <$1>'), describe(setting))
  if (separator !== undefined) option.argParser(collect)
  if (alone !== undefined) option.preset(alone)
  // Used by shell completion only.
  if (words !== undefined) option.argChoices = [...words]
  command.addOption(option)
}

function describe ({ variable, default: fallback, meaning }: Setting): string {
  return `${meaning.replaceAll('`', '')} (${variable}${fallback === undefined ? '' : `, default ${fallback}`})`
}

/** Lists the settings without a flag. */
function variablesHelp (command: Command): string {
  const helper = command.createHelp()
  helper.prepareContext({ helpWidth: HELP_WIDTH })
  const rows = Object.values<Setting>(SETTINGS).filter(({ argument = '' }) => !argument.startsWith('--'))
  const width = Math.max(...rows.map(({ variable }) => variable.length))
  const lines = rows.map((row) => helper.formatItem(row.variable, width, describe(row), helper))
  return `\nEnvironment:\n${lines.join('\n')}`
}
