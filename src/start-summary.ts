import type { Config } from './config/settings.ts'
import { ROOT_PROBLEMS } from './core/roots/root.ts'
import { counted } from './core/shared/text.ts'
import type { SkillManager } from './core/skill-manager.ts'

/** Most folders with a line of their own. */
const MAX_FOLDERS = 4

interface StartedService {
  readonly skills: SkillManager
  readonly config: Config
  readonly version: string
  /** URL of the service, with the base path. */
  readonly url: string
}

/** Summarizes the service for a person at a terminal, in at most ten lines. */
export async function startSummary ({ skills, config, version, url }: StartedService): Promise<string> {
  await skills.available()
  const findings = new Map<string, number>()
  let total = 0
  for (const name of skills.indexedNames()) {
    const count = (await skills.find(name))?.findings.length ?? 0
    const root = skills.rootOf(name) ?? ''
    findings.set(root, (findings.get(root) ?? 0) + count)
    total += count
  }
  const folders = skills.roots.map(({ path, status: { name, state, skills: count } }) => {
    const what = state === 'ok'
      ? `${counted(count, 'skill')}, ${counted(findings.get(name) ?? 0, 'finding')}`
      : ROOT_PROBLEMS[state]
    return `  ${path}: ${what}`
  })
  const invalidSkills = skills.indexedNames().filter((name) => skills.findIndexed(name)?.valid === false).length
  const invalid = invalidSkills === 0 ? '' : ` (${counted(invalidSkills, 'invalid skill')}: ${url}/?valid=false)`
  const more = folders.length - MAX_FOLDERS
  return [
    `skillserve ${version}: ${counted(skills.indexedNames().length, 'skill')}, ${counted(total, 'finding')}`,
    ...folders.slice(0, MAX_FOLDERS),
    ...more > 0 ? [`  and ${counted(more, 'more folder', 'more folders')}`] : [],
    ...config.ui ? [`  page        ${url}/${invalid}`] : [],
    `  MCP         ${url}/mcp`,
    `  tool calls  ${url}/agent/tool-call`,
    ''
  ].join('\n')
}
