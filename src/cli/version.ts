import type { Command } from './command.ts'
import { readPackageVersion } from './package-files.ts'

export const command: Command = {
  summary: 'prints the version',
  async run (_args, { print }) {
    print(`${readPackageVersion()}\n`)
    return 0
  }
}
