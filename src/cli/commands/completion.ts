import type { Command } from 'commander'
import type { RunCommand } from '../command.ts'

/** Creates the command that prints a completion script for a shell, from the commands and flags of the program. */
export function completionOf (program: Command): { readonly run: RunCommand } {
  return {
    async run ({ positionals: [shell] }, { print }) {
      // zsh reads completions of bash.
      if (shell === 'zsh') {
        print('autoload -U +X compinit && compinit -u\n')
        print('autoload -U +X bashcompinit && bashcompinit\n')
      }
      print(bash(program))
      return 0
    }
  }
}

function bash ({ commands }: Command): string {
  const names = commands.map((command) => command.name()).join(' ')
  const [serve, ...others] = commands
  // `serve` comes last: its pattern `*` matches every other word.
  const cases = [...others, serve ?? []].flat().map((command) => {
    const flags = [...command.options.map(({ long }) => long ?? ''), '--help', '--version'].join(' ')
    const words = command.name() === 'help' ? names : command.registeredArguments[0]?.argChoices?.join(' ') ?? ''
    return `    ${command === serve ? '*' : command.name()}) flags='${flags}' words='${words}' ;;`
  })
  const choices = commands.flatMap((command) => command.options.flatMap(({ long, argChoices }) =>
    argChoices === undefined ? [] : [`    ${command.name()}\\ ${long}) words='${argChoices.join(' ')}' ;;`]))
  return `_skillserve () {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} flags= words= IFS=$' \\t\\n'
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  case "\${COMP_WORDS[1]} $before" in
${choices.join('\n')}
  esac
  ((COMP_CWORD == 1)) && words='${names}'
  [[ $word == -* ]] && words=$flags
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  IFS=$'\\n'
  [[ -z $words ]] && COMPREPLY=($(compgen -f -- "$word"))
  ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -d -- "$word"))
}
complete -o filenames -F _skillserve skillserve
`
}
