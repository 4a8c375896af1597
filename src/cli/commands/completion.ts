import type { Command } from 'commander'
import type { RunCommand } from '../command.ts'

/** The command that prints a script for a shell, made from the program's own commands. */
export function completionOf (program: Command): { readonly run: RunCommand } {
  return {
    async run ({ positionals: [shell] }, { print }) {
      print(shell === 'zsh' ? zsh(program) : bash(program))
      return 0
    }
  }
}

/** In bash, `COMP_WORDS` has `--flag=value` as three words, in zsh as one. */
function bash ({ commands }: Command): string {
  const names = commands.map((command) => command.name()).join(' ')
  const cases = commands.map((command) => {
    const flags = [...command.options.map(({ long }) => long ?? ''), '--help', '--version'].join(' ')
    const words = command.name() === 'help' ? names : command.registeredArguments[0]?.argChoices?.join(' ') ?? ''
    return { isDefault: command.name() === 'serve', line: `flags='${flags}' words='${words}' ;;`, name: command.name() }
  })
  // The default command last: its pattern fits every other word.
  const ofCommands = [...cases.filter(({ isDefault }) => !isDefault), ...cases.filter(({ isDefault }) => isDefault)]
    .map(({ isDefault, line, name }) => `    ${isDefault ? '*' : name}) ${line}`)
  const choices = commands.flatMap((command) => command.options.flatMap(({ long, argChoices }) =>
    argChoices === undefined ? [] : [`    ${command.name()}\\ ${long}) values='${argChoices.join(' ')}' ;;`]))
  return `_skillserve () {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} flags= words= values= prefix= IFS=$' \\t\\n'
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $word == --*=* ]]; then
    before=\${word%%=*}; prefix=$before=; word=\${word#*=}
  fi
  case \${COMP_WORDS[1]} in
${ofCommands.join('\n')}
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
function zsh (program: Command): string {
  return `autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n${bash(program)}`
}
