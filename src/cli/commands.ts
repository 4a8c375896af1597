import { access } from './access.ts'
import type { CommandTable } from './command.ts'
import { completion } from './completion.ts'
import { dev } from './dev.ts'
import { exportCommand } from './export.ts'
import { healthcheck } from './healthcheck.ts'
import { help } from './help.ts'
import { lock } from './lock.ts'
import { serve } from './serve.ts'
import { sign } from './sign.ts'
import { sync } from './sync.ts'
import { token } from './token.ts'
import { validate } from './validate.ts'
import { verify } from './verify.ts'
import { version } from './version.ts'

/** Every command: a new one is a file and a row here. */
export const COMMANDS: CommandTable = {
  serve, dev, validate, lock, sign, verify, token, access, export: exportCommand, sync, healthcheck, completion, help, version
}
