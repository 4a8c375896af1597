import { pino } from 'pino'
import { Shutdown } from '../../http/shutdown.ts'
import { serveMcpOverStdio } from '../../mcp/stdio.ts'
import { openSkills } from '../../open-skills.ts'
import { createToolRegistry } from '../../tools/registry.ts'
import { createTools } from '../../tools/tools.ts'
import type { RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'
import { EXAMPLE_SKILLS, readPackageVersion } from '../../operator/package-files.ts'

const STANDARD_ERROR = 2

/** Serves MCP over standard input and output, until the host closes the input. */
export const run: RunCommand = async (args, context) => {
  const { env } = context
  const config = await readConfig(args, context, EXAMPLE_SKILLS)
  const log = pino({ level: config.logLevel }, pino.destination(STANDARD_ERROR))
  const shutdown = new Shutdown()
  const { roots, trust, skills } = await openSkills(config, { env, log, shutdown })
  await trust?.start()
  await skills.start()
  roots.sources.start()
  const onError = (err: unknown, tool: string): void => { log.error({ err, tool }, 'a tool call failed') }
  const registry = createToolRegistry(createTools(), { onError })
  const { closed } = serveMcpOverStdio({ skills, registry, log, version: readPackageVersion() })
  log.info({}, 'skillserve speaks MCP over standard input and output')
  await closed
  await shutdown.close()
  return 0
}
