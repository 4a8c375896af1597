import type { Command } from './command.ts'
import { readPackageVersion } from './package-version.ts'

export const version: Command = {
  summary: 'prints the version',
  async run (_args, { print }) {
    print(`${readPackageVersion()}\n`)
    return 0
  }
}
