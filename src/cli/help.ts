import { quote } from '../config/setting.ts'
import { type Command, CommandError, commandHint, type CommandTable, DEFAULT_COMMAND, loadCommand, loadCommands } from './command.ts'

export const command: Command = {
  summary: 'prints this, or what a command takes',
  positionals: '[COMMAND]',
  async run ({ positionals: [name, unwanted] }, { commands, print }) {
    if (unwanted !== undefined) throw new CommandError(`help takes one command, not ${quote(unwanted)} as well`)
    print(fill(name === undefined ? await describeProgram(commands) : await describeCommand(name, commands)))
    return 0
  }
}

const MAX_LINE_CHARACTERS = 80

/** Lines that a terminal has room for. Lines of prose are joined first. A long line goes on below its second column, which two blanks part from the first. */
function fill (text: string): string {
  return text.replace(/(\S)\n(?=\S)/g, '$1 ').split('\n').map((line) => {
    const [head = ''] = /^ {2}\S.*? {2,}|^ */.exec(line) ?? []
    const room = new RegExp(`(\\S.{0,${MAX_LINE_CHARACTERS - head.length - 1}}|\\S+)(?: +|$)`, 'g')
    return line === '' ? '' : head + Array.from(line.slice(head.length).matchAll(room), ([, part]) => part).join(`\n${' '.repeat(head.length)}`)
  }).join('\n')
}

async function describeProgram (commands: CommandTable): Promise<string> {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = (await loadCommands(commands)).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `skillserve serves folders of Agent Skills over HTTP.

Usage: skillserve [${DEFAULT_COMMAND}] [DIR...] [flags]
       skillserve COMMAND [arguments] [flags]

${lines.join('\n')}

\`skillserve help COMMAND\` prints what a command takes. \`-h\` and \`--help\`, \`-v\` and \`--version\` work everywhere.
A folder that is named like a command is ./NAME.

${(await loadCommand(DEFAULT_COMMAND, commands))?.details?.() ?? ''}`
}

async function describeCommand (name: string, commands: CommandTable): Promise<string> {
  const command = await loadCommand(name, commands)
  if (command === undefined) throw new CommandError(`${quote(name)} is no command${commandHint(name, commands)}`)
  const { summary, positionals, flags, switches, details } = command
  const usage = ['skillserve', name, positionals, (flags ?? switches) && '[flags]'].filter((word) => word !== undefined)
  const text = details === undefined ? '' : `\n${details()}`
  return `Usage: ${usage.join(' ')}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n${text}`
}
