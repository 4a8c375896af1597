import type { CommandTable } from './command.ts'
import * as serve from './commands/serve.ts'

/** Every command: a new one is a file and a row here. Only the default is loaded at each start. */
export const COMMANDS = {
  serve: async () => serve,
  dev: () => import('./commands/dev.ts'),
  validate: () => import('./commands/validate.ts'),
  lock: () => import('./commands/lock.ts'),
  sign: () => import('./commands/sign.ts'),
  verify: () => import('./commands/verify.ts'),
  token: () => import('./commands/token.ts'),
  access: () => import('./commands/access.ts'),
  export: () => import('./commands/export.ts'),
  sync: () => import('./commands/sync.ts'),
  healthcheck: () => import('./commands/healthcheck.ts'),
  completion: () => import('./commands/completion.ts'),
  help: () => import('./help.ts'),
  version: () => import('./version.ts')
} satisfies CommandTable
