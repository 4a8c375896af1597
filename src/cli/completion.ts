import { quote } from '../config/setting.ts'
import { type Command, CommandError, type CommandTable } from './command.ts'

const SHELLS = { bash, zsh } as const

/** A script for the shell that completes words and flags, made from the table of commands. */
export const completion: Command = {
  summary: 'prints a completion script for bash or zsh',
  positionals: 'bash|zsh',
  details: () => `For bash:  source <(skillserve completion bash)
For zsh:   source <(skillserve completion zsh)
`,
  async run ({ positionals: [shell = ''] }, { commands, print }) {
    if (!Object.hasOwn(SHELLS, shell)) throw new CommandError(`completion is for ${Object.keys(SHELLS).join(' or ')}, not ${quote(shell)}`)
    print(SHELLS[shell as keyof typeof SHELLS](commands))
    return 0
  }
}

function flagsOf ({ flags = [], switches = [] }: Command): string {
  return [...flags, ...switches, 'help', 'version'].map((flag) => `--${flag}`).join(' ')
}

function bash (commands: CommandTable): string {
  const cases = Object.entries(commands).map(([name, command]) => `    ${name}) flags='${flagsOf(command)}' ;;`)
  return `_skillserve () {
  local word=\${COMP_WORDS[COMP_CWORD]} flags=''
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
    *) flags='${commands['serve'] === undefined ? '' : flagsOf(commands['serve'])}' ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${Object.keys(commands).join(' ')}' -- "$word") $(compgen -d -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _skillserve skillserve
`
}

/** zsh reads completions of bash. */
function zsh (commands: CommandTable): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`
}
