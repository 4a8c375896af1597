#!/usr/bin/env node
import nodeModule from 'node:module'
import { ConfigError, loadConfig, parseCommandLine } from '../config.ts'
import { HELP } from './help.ts'
import { readPackageVersion } from './package-version.ts'

// Node 22 and later keep compiled code from one start to the next, where there is a folder to keep it in.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') nodeModule.enableCompileCache()

const argv = process.argv.slice(2)

try {
  const { flags } = parseCommandLine(argv)
  if (flags.has('help')) process.stdout.write(HELP)
  else if (flags.has('version')) process.stdout.write(`${readPackageVersion()}\n`)
  else {
    const config = loadConfig({ argv, env: process.env, cwd: process.cwd() })
    // Loaded late: whoever mistypes a flag or asks for help should not wait for the whole service.
    const { startServer } = await import('../server.ts')
    await startServer(config, readPackageVersion())
  }
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`skillserve: ${error.message}\n`)
  process.exitCode = 1
}
