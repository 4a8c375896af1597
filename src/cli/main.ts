import nodeModule from 'node:module'
import { constants } from 'node:os'
import { isServe, runLight } from './light.ts'

const argv = process.argv.slice(2)

// Without a listener, a signal does not end the first process of a container. Some commands replace these listeners.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // SIGHUP reloads the configuration of `serve`. Before the start is complete, there is nothing to reload.
    if (!isServe(argv)) process.exit(128 + constants.signals[signal])
    if (signal !== 'SIGHUP') process.exit(0)
  })
}

// Without a listener, Node would open its inspector on this signal, a port at which any local user can run code.
process.on('SIGUSR1', () => {})

// Node 22 and later cache compiled code on disk, if there is a writable folder for it.
const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: () => void }
enableCompileCache?.()

/** Exit code that shells report for a program ended by SIGPIPE, a signal that Node ignores. */
const EXIT_OF_SIGPIPE = 141
/** Exit code of a failure, different from that of findings of `validate`. */
const EXIT_OF_LOST_OUTPUT = 3

// A reader such as `head` may close the pipe early. The rest of the output is then not needed.
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
