#!/usr/bin/env node
import nodeModule from 'node:module'

// Without a listener Node opens its inspector on this signal: a port at which any local user could run code as the service.
process.on('SIGUSR1', () => {})

/** The oldest Node that the code runs on: `engines` in package.json. */
const OLDEST_NODE = [20, 19] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
  process.stderr.write(`skillserve: Node ${OLDEST_NODE.join('.')} or later is needed, this is ${process.versions.node}\n`)
  process.exit(1)
}

// Node 22 and later keep compiled code from one start to the next, where there is a folder to keep it in.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') nodeModule.enableCompileCache()

// Loaded after the check: an older Node fails at what this imports.
const { runCommandLine } = await import('./run.ts')

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  print: (text) => { process.stdout.write(text) }
}, (text) => { process.stderr.write(text) })
