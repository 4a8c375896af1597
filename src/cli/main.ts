import nodeModule from 'node:module'
import { constants } from 'node:os'
import { isServe, runLight } from './light.ts'

const argv = process.argv.slice(2)

// A signal would not end the first process of a container. Commands that stop by themselves replace these listeners.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // `serve` reloads its configuration at SIGHUP, and there is none yet.
    if (!isServe(argv)) process.exit(128 + constants.signals[signal])
    if (signal !== 'SIGHUP') process.exit(0)
  })
}

// Without a listener Node opens its inspector on this signal: a port at which any local user could run code.
process.on('SIGUSR1', () => {})

// Node 22 and later keep compiled code from one start to the next, where there is a folder to keep it in.
const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: () => void }
enableCompileCache?.()

/** What a shell says of a program that SIGPIPE ended. Node ignores the signal. */
const EXIT_OF_SIGPIPE = 141
/** A fault, which is no finding of `validate`. */
const EXIT_OF_LOST_OUTPUT = 3

// A reader such as `head` leaves when it has what it wants. The rest is for nobody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OF_SIGPIPE)
  process.stderr.write(`skillserve: standard output cannot be written (${error.code ?? error.message})\n`)
  process.exit(EXIT_OF_LOST_OUTPUT)
})

const { env } = process
const print = (text: string): void => { process.stdout.write(text) }
const printError = (text: string): void => { process.stderr.write(text) }

const code = await runLight(argv, env, print, printError)
process.exitCode = code ?? await (await import('./run.ts'))
  .runCommandLine(argv, { env, cwd: process.cwd(), print, isTerminal: process.stdout.isTTY }, printError)
