#!/usr/bin/env node
// The executable that package managers link. Written for Node 12, since an older Node cannot parse the modules of the
// service and would end with a stack trace.

/** Oldest supported Node, as in `engines` of package.json. */
const OLDEST_MAJOR = 20
const OLDEST_MINOR = 19

const version = process.versions.node.split('.').map(Number)
if (version[0] < OLDEST_MAJOR || (version[0] === OLDEST_MAJOR && version[1] < OLDEST_MINOR)) {
  const needed = OLDEST_MAJOR + '.' + OLDEST_MINOR
  process.stderr.write('skillserve: Node ' + needed + ' or later is needed, this is ' + process.versions.node + '\n')
  process.exitCode = 1
} else {
  // Each hanging disk blocks a thread of libuv's pool. libuv reads the size when it first needs a thread.
  if (!process.env.UV_THREADPOOL_SIZE) process.env.UV_THREADPOOL_SIZE = '32'
  import('./main.js')
}
