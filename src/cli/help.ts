import { quote } from '../config/setting.ts'
import { type Command, CommandError, type CommandTable, DEFAULT_COMMAND } from './command.ts'
import { commandHint } from './command-hint.ts'

export const help: Command = {
  summary: 'prints this, or what a command takes',
  positionals: '[COMMAND]',
  async run ({ positionals: [name, unwanted] }, { commands, print }) {
    if (unwanted !== undefined) throw new CommandError(`help takes one command, not ${quote(unwanted)} as well`)
    print(name === undefined ? describeProgram(commands) : describeCommand(name, commands))
    return 0
  }
}

function describeProgram (commands: CommandTable): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `skillserve serves folders of Agent Skills over HTTP.

Usage: skillserve [${DEFAULT_COMMAND}] [DIR...] [flags]
       skillserve COMMAND [arguments] [flags]

${lines.join('\n')}

\`skillserve help COMMAND\` prints what a command takes. \`-h\` and \`--help\`, \`-v\` and \`--version\` work everywhere.
A folder that is named like a command is ./NAME.

${commands[DEFAULT_COMMAND]?.details?.() ?? ''}`
}

function describeCommand (name: string, commands: CommandTable): string {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) throw new CommandError(`${quote(name)} is no command${commandHint(name, commands)}`)
  const { summary, positionals, flags, switches, details } = command
  const usage = ['skillserve', name, positionals, (flags ?? switches) && '[flags]'].filter((word) => word !== undefined)
  const text = details === undefined ? '' : `\n${details()}`
  return `Usage: ${usage.join(' ')}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n${text}`
}
