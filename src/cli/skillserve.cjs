#!/usr/bin/env node
// The program that a package manager links. Its syntax is that of Node 12: an older Node cannot parse the modules of
// the service, and would end with a stack trace.

/** The oldest Node that the code runs on: `engines` in package.json. */
const OLDEST_MAJOR = 20
const OLDEST_MINOR = 19

const version = process.versions.node.split('.').map(Number)
if (version[0] < OLDEST_MAJOR || (version[0] === OLDEST_MAJOR && version[1] < OLDEST_MINOR)) {
  const needed = OLDEST_MAJOR + '.' + OLDEST_MINOR
  process.stderr.write('skillserve: Node ' + needed + ' or later is needed, this is ' + process.versions.node + '\n')
  process.exitCode = 1
} else {
  // Each disk that hangs keeps a thread of libuv's pool, whose size is read when the first one is needed.
  if (!process.env.UV_THREADPOOL_SIZE) process.env.UV_THREADPOOL_SIZE = '32'
  import('./main.js').catch(function (error) {
    if (error.code !== 'EMFILE') throw error
    process.stderr.write('skillserve: too many open files: raise the limit (ulimit -n) to 256 or more\n')
    process.exitCode = 1
  })
}
