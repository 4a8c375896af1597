import type { ChangeFeed } from '../../core/events/change-feed.ts'
import type { Finding } from '../../core/shared/skill.ts'
import type { SkillService } from '../../core/skill-source.ts'
import type { TokenEstimate } from '../../verdicts/tokens.ts'
import { type Command, CommandError } from '../command.ts'
import { readConfig } from '../folders/read-config.ts'
import { openBrowser } from '../open-browser.ts'
import { readPackageVersion } from '../package-files.ts'

/** Settings that suit a preview: nobody else reaches it, and its own lines are not lost among those of requests. */
const OVERRIDES = { host: '127.0.0.1', logLevel: 'warn', ui: true } as const

/** A live preview for authors: the open page and the terminal follow each save. */
export const command: Command = {
  summary: 'previews folders of skills while they are written',
  positionals: 'DIR...',
  flags: ['port', 'allow-links'],
  switches: ['no-open'],
  details: () => `Serves the folders on this machine only. A page that is open in a browser is loaded again when what it shows is saved, and the
findings and token counts of each skill that is saved are printed here.

  --port PORT        default 8080; 0 takes any free port
  --allow-links DIR  folders that links in a folder of skills may lead into, as for serve
  --no-open          prints the address only; otherwise a browser opens it, where there is a terminal and a desktop

Exits with 0 after SIGTERM or SIGINT.
`,
  async run ({ positionals, flags }, { cwd, env, print, isTerminal = false, endBySignal }) {
    endBySignal?.(0)
    if (positionals.length === 0) throw new CommandError('dev needs a folder of skills: skillserve dev ./skills')
    const config = { ...await readConfig(positionals, { flags }, { env: {}, cwd }), ...OVERRIDES }
    const [{ startServer }, { createChangeFeed }] = await Promise.all([import('../../server.ts'), import('../../core/events/change-feed.ts')])
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
}

/** Prints what is wrong with each skill, now and after each change of it. */
async function printFindings (skills: SkillService, feed: ChangeFeed, print: (text: string) => void): Promise<void> {
  const [{ readCatalogEntry }, { createJudge }, { mcpFindings }] = await Promise.all([
    import('../../core/listing/entry.ts'), import('../../verdicts/entry.ts'), import('../../mcp/findings.ts')
  ])
  const judge = createJudge([mcpFindings])
  let hasBegun = false
  const printed = new Map<string, string>()
  const report = async (name: string, isSaved: boolean): Promise<void> => {
    try {
      const { findings, tokens } = await readCatalogEntry({ skills, judge }, name)
      const text = describe(name, findings, tokens)
      // Until it has a position, the feed tells of skills that it finds at the start: the list has them too.
      if (!isSaved && printed.get(name) === text) return
      printed.set(name, text)
      print(text)
    } catch (error) {
      print(`${name}: ${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  feed.subscribe((event) => {
    switch (event.type) {
      case 'removed':
        printed.delete(event.name)
        return print(`${event.name}: removed\n`)
      case 'added':
      case 'changed':
        void report(event.name, hasBegun)
        break
      case 'position':
        hasBegun = true
        break
      case 'reset':
        break
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
  if (findings.length === 0) return `${name}: nothing to mend; ${tokens}\n`
  const lines = findings.map(({ severity, message, fix, file = 'SKILL.md', line }) =>
    `  ${severity} ${file}${line === undefined ? '' : `:${line}`}: ${message}. ${fix}.\n`)
  return `${name}: ${tokens}\n${lines.join('')}`
}
