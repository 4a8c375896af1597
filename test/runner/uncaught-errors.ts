/**
 * Loaded before the tests. To find the test that an uncaught error belongs to, tap follows every promise with an asynchronous hook.
 * That takes up to half of the CPU time of a test file. Here the hook does nothing: an uncaught error fails its file, and the stack names the line.
 */
import asyncHooks, { type AsyncHook } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const idle: AsyncHook = { enable: () => idle, disable: () => idle }
Object.assign(asyncHooks, { createHook: () => idle })
syncBuiltinESMExports()

const { default: t } = await import('tap')
process.on('uncaughtException', (error) => { t.threw(error) })
