import nodeModule from 'node:module'
import { constants } from 'node:os'
import { isatty } from 'node:tty'

let codeOfSignal: ((signal: 'SIGINT' | 'SIGTERM') => number) | undefined = (signal) => 128 + constants.signals[signal]

// The first process of a container has no end by default. What a command holds is given back when the process exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => { if (codeOfSignal !== undefined) process.exit(codeOfSignal(signal)) })

// Without a listener Node opens its inspector on this signal: a port at which any local user could run code as the service.
process.on('SIGUSR1', () => {})

// Node 22 and later keep compiled code from one start to the next, where there is a folder to keep it in.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') nodeModule.enableCompileCache()

// Loaded after that, so that its code is kept too.
const { runCommandLine } = await import('./run.ts')

/** What a shell says of a program that SIGPIPE ended. Node ignores the signal. */
const EXIT_OF_SIGPIPE = 141

function print (text: string): void {
  const { stdout } = process
  // A reader such as `head` leaves when it has what it wants. The rest is for nobody.
  if (stdout.listenerCount('error') === 0) {
    stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      process.exit(EXIT_OF_SIGPIPE)
    })
  }
  stdout.write(text)
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  print,
  endBySignal: (code) => { codeOfSignal = code === undefined ? undefined : () => code },
  // Asking `process.stdout` makes its stream, and a stream made this early slows down every `process.nextTick` of the process (V8 11.3).
  isTerminal: isatty(1)
}, (text) => { process.stderr.write(text) })
