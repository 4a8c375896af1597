import { quote } from '../config/setting.ts'
import { nearest } from '../core/ground/nearest.ts'
import type { CommandTable } from './command.ts'

/** What to say behind an unknown command: the nearest one, and all there are. */
export function commandHint (word: string, commands: CommandTable): string {
  const names = Object.keys(commands)
  const near = nearest(word, names)
  return `${near === undefined ? '' : `, did you mean ${quote(near)}?`} (commands: ${names.join(', ')})`
}
