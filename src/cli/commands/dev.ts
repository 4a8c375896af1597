import { type ChangeFeed, createChangeFeed } from '../../core/events/change-feed.ts'
import { describeState } from '../../core/listing/entry.ts'
import type { Finding } from '../../core/shared/skill.ts'
import type { SkillService } from '../../core/service.ts'
import { mcpFindings } from '../../mcp/findings.ts'
import { startServer } from '../../server.ts'
import { createJudge } from '../../verdicts/entry.ts'
import type { TokenEstimate } from '../../verdicts/tokens.ts'
import type { RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'
import { openBrowser } from '../open-browser.ts'
import { readPackageVersion } from '../package-files.ts'

/** Settings that suit a preview: nobody else reaches it, and its own lines are not lost among those of requests. */
const OVERRIDES = { host: '127.0.0.1', logLevel: 'warn', ui: true } as const

/** A live preview for authors: the open page and the terminal follow each save. */
export const run: RunCommand = async ({ positionals, flags }, context) => {
  const { env, print, isTerminal = false, endBySignal } = context
  endBySignal?.(0)
  const config = { ...await readConfig({ positionals, flags }, { ...context, env: {} }), ...OVERRIDES }
  await startServer(config, {
    version: readPackageVersion(),
    env,
    takeSignals: (takes) => { endBySignal?.(takes ? undefined : 1) },
    preview: (skills, url) => {
      print(`Preview at ${url}\n`)
      if (isTerminal && !flags.has('no-open')) openBrowser(url, env)
      const feed = createChangeFeed({ skills })
      void printFindings(skills, feed, print)
      return () => { feed.close() }
    }
  })
  return undefined
}

/** Prints what is wrong with each skill, now and after each change of it. */
async function printFindings (skills: SkillService, feed: ChangeFeed, print: (text: string) => void): Promise<void> {
  const judge = createJudge([mcpFindings])
  let hasBegun = false
  const printed = new Map<string, string>()
  const report = async (name: string, isSaved: boolean): Promise<void> => {
    try {
      const { findings, tokens } = await skills.read(name, (state) => describeState(state, judge))
      const text = describe(name, findings, tokens)
      // Until it has a position, the feed reports skills that it finds at the start: the list has them too.
      if (!isSaved && printed.get(name) === text) return
      printed.set(name, text)
      print(text)
    } catch (error) {
      print(`${name}: ${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  feed.subscribe((event) => {
    if (event.type === 'removed') {
      printed.delete(event.name)
      print(`${event.name}: removed\n`)
    } else if (event.type === 'added' || event.type === 'changed') {
      void report(event.name, hasBegun)
    } else if (event.type === 'position') {
      hasBegun = true
    }
  })
  try {
    for (const name of await skills.list()) await report(name, false)
  } catch (error) {
    print(`${error instanceof Error ? error.message : String(error)}\n`)
  }
}

function describe (name: string, findings: readonly Finding[], { listed, body }: TokenEstimate): string {
  const tokens = `about ${listed} tokens in each turn${body === null ? '' : `, ${body} in use`}`
  if (findings.length === 0) return `${name}: nothing to fix; ${tokens}\n`
  const lines = findings.map(({ severity, message, fix, file = 'SKILL.md', line }) =>
    `  ${severity} ${file}${line === undefined ? '' : `:${line}`}: ${message}. ${fix}.\n`)
  return `${name}: ${tokens}\n${lines.join('')}`
}
