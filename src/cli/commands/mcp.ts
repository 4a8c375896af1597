import { pino } from 'pino'
import { openRoots } from '../../config/roots.ts'
import { createChangeFeed } from '../../core/events/change-feed.ts'
import { createSkillManager } from '../../core/skill-manager.ts'
import { serveMcpOverStdio } from '../../mcp/stdio.ts'
import { createToolRegistry } from '../../tools/registry.ts'
import { createTools } from '../../tools/tools.ts'
import { openTrust } from '../../trust/trust.ts'
import type { RunCommand } from '../command.ts'
import { readConfig, settingSources } from '../folders.ts'
import { EXAMPLE_SKILLS, readPackageVersion } from '../package-files.ts'

const STANDARD_ERROR = 2

/** Serves MCP to the host that has started the process, until it closes its end. */
export const run: RunCommand = async (args, context) => {
  const { env, endBySignal } = context
  endBySignal?.(0)
  const config = await readConfig(settingSources(args, context, EXAMPLE_SKILLS), context)
  const log = pino({ level: config.logLevel }, pino.destination(STANDARD_ERROR))
  const roots = await openRoots(config, { log, env })
  const trust = await openTrust(config, roots, log)
  const { sources } = roots
  const { linkTargets, watchPolling: polling } = config
  const projectRoots = trust?.guard(sources.roots) ?? sources.roots
  const skills = createSkillManager({ projectRoots, linkTargets, polling, log })
  const feed = createChangeFeed({ skills, log })
  await trust?.start()
  await skills.start()
  sources.start()
  const onError = (err: unknown, tool: string): void => { log.error({ err, tool }, 'a tool call failed') }
  const registry = createToolRegistry(createTools(), { onError })
  const { closed } = serveMcpOverStdio({ skills, feed, registry, log, version: readPackageVersion() })
  log.info({}, 'skillserve speaks MCP over standard input and output')
  await closed
  feed.close()
  await trust?.close()
  await skills.close()
  await sources.close()
  return 0
}
