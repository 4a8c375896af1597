import nodeModule from 'node:module'

// Without a listener Node opens its inspector on this signal: a port at which any local user could run code as the service.
process.on('SIGUSR1', () => {})

// Node 22 and later keep compiled code from one start to the next, where there is a folder to keep it in.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') nodeModule.enableCompileCache()

// Loaded after that, so that its code is kept too.
const { runCommandLine } = await import('./run.ts')

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  print: (text) => { process.stdout.write(text) },
  isTerminal: process.stdout.isTTY
}, (text) => { process.stderr.write(text) })
