import nodeModule from 'node:module'
import { constants } from 'node:os'
import { isatty } from 'node:tty'

let codeOfSignal: ((signal: 'SIGINT' | 'SIGTERM') => number) | undefined = (signal) => 128 + constants.signals[signal]

// The first process of a container has no end by default. What a command holds is given back when the process exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => { if (codeOfSignal !== undefined) process.exit(codeOfSignal(signal)) })
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

function print (text: string): void {
  const { stdout } = process
  // A reader such as `head` leaves when it has what it wants. The rest is for nobody.
  if (stdout.listenerCount('error') === 0) {
    stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(EXIT_OF_SIGPIPE)
      process.stderr.write(`skillserve: standard output cannot be written (${error.code ?? error.message})\n`)
      process.exit(EXIT_OF_LOST_OUTPUT)
    })
  }
  stdout.write(text)
}

// Loaded now, so that its code is kept too.
const { runCommandLine } = await import('./run.ts')
process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  print,
  endBySignal: (code) => { codeOfSignal = code === undefined ? undefined : () => code },
  // `process.stdout` would make its stream, and one made this early slows down every `process.nextTick` (V8 11.3).
  isTerminal: isatty(1)
}, (text) => { process.stderr.write(text) })
