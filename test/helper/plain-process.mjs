// tap loads itself into each process that a test starts, to measure coverage. Processes of the service must be those of
// users: another user may not write into tap's folder, and loading tap takes time.
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS

// tap follows each promise by async hooks, to name the test that an uncaught error belongs to. That takes a
// fifth of the time of all tests. Without the hooks, such an error ends the file instead of one test in it.
const { createHook } = asyncHooks
const noHook = { enable: () => noHook, disable: () => noHook }
asyncHooks.createHook = (callbacks) =>
  new Error().stack.includes('async-hook-domain') ? noHook : createHook(callbacks)
syncBuiltinESMExports()
