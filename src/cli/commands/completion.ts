import { quote } from '../../config/setting.ts'
import { type Command, CommandError, DEFAULT_COMMAND, loadCommands } from '../command.ts'

type NamedCommands = Awaited<ReturnType<typeof loadCommands>>

const SHELLS = { bash, zsh } as const

/** A script for the shell that completes words and flags, made from the table of commands. */
export const command: Command = {
  summary: 'prints a completion script for bash or zsh',
  positionals: 'bash|zsh',
  words: Object.keys(SHELLS),
  details: () => `  bash  source <(skillserve completion bash)
  zsh   source <(skillserve completion zsh)
`,
  async run ({ positionals: [shell, unwanted] }, { commands, print }) {
    if (shell === undefined) throw new CommandError(`completion takes a shell, ${Object.keys(SHELLS).join(' or ')}`)
    if (unwanted !== undefined) throw new CommandError(`completion takes one shell, not ${quote(unwanted)} as well`)
    if (!Object.hasOwn(SHELLS, shell)) throw new CommandError(`completion is for ${Object.keys(SHELLS).join(' or ')}, not ${quote(shell)}`)
    print(SHELLS[shell as keyof typeof SHELLS](await loadCommands(commands)))
    return 0
  }
}

function flagsOf ({ flags = [], switches = [], optionalFlags = {} }: Command): string {
  return [...new Set([...flags, ...switches, ...Object.keys(optionalFlags), 'help', 'version'])].map((flag) => `--${flag}`).join(' ')
}

/** In bash, `COMP_WORDS` has `--flag=value` as three words, in zsh as one. */
function bash (commands: NamedCommands): string {
  const names = commands.map(([name]) => name).join(' ')
  const ofCommands = commands.map(([name, command]) => {
    const words = name === 'help' ? names : command.words?.join(' ') ?? ''
    return `    ${name === DEFAULT_COMMAND ? '*' : name}) flags='${flagsOf(command)}' words='${words}' ;;`
  })
  // The default command last: it is that of every other word.
  const cases = ofCommands.toSorted((a, b) => Number(a.trimStart().startsWith('*')) - Number(b.trimStart().startsWith('*')))
  const choices = commands.flatMap(([name, { choices = {} }]) => Object.entries(choices).map(([flag, values]) => `    ${name}\\ --${flag}) values='${values.join(' ')}' ;;`))
  return `_skillserve () {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} flags= words= values= prefix= IFS=$' \\t\\n'
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD-2]}; elif [[ $word == --*=* ]]; then before=\${word%%=*}; prefix=$before=; word=\${word#*=}; fi
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  case "\${COMP_WORDS[1]} $before" in
${choices.join('\n')}
  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -P "$prefix" -W "$values" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${names}' -- "$word"))
    IFS=$'\\n'
    COMPREPLY+=($(compgen -d -- "$word"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _skillserve skillserve
`
}

/** zsh reads completions of bash. */
function zsh (commands: NamedCommands): string {
  return `autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`
}
