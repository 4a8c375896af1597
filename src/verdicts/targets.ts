/** What a consumer does with a skill, the mildest first. A verdict is the worst outcome of all findings. */
export const OUTCOMES = ['ok', 'warned', 'changed', 'cut', 'not_loaded', 'refused'] as const

export type Outcome = typeof OUTCOMES[number]

/** A consumer of skills: a format, a validator, an agent, an upload service, an index. */
export interface Target {
  readonly title: string
  /** What its rules were read from. */
  readonly source: string
  /** The day on which they were read. */
  readonly read: string
  /** Other names that a caller may use. */
  readonly aliases: readonly string[]
}

/** @param read the day on which the rules were read: targets change monthly */
function target (title: string, source: string, aliases: readonly string[] = [], read = '2026-11-22'): Target {
  return { title, source, read, aliases }
}

/** Every target by its name, in the order of reports. Their rules are in outcomes.ts. */
export const TARGETS = {
  spec: target(
    'Agent Skills format', 'agentskills/agentskills@69ef37e docs/specification.mdx', ['format', 'agent-skills']
  ),
  'skills-ref': target('skills-ref, the reference validator',
    'agentskills/agentskills@00d5a46 skills-ref 0.1.0, strictyaml 1.6', [], '2026-11-28'),
  'quick-validate': target("quick_validate of Anthropic's skill-creator",
    'anthropics/skills@049d5f2 skills/skill-creator/scripts, PyYAML 6', [], '2026-11-28'),
  'anthropic-upload': target('Upload to Anthropic', 'types of @anthropic-ai/sdk 1.12.0, and third-party texts',
    ['anthropic']),
  'openai-upload': target('Upload to OpenAI', 'types of openai 6.49.0, and third-party texts', ['openai']),
  'claude-code': target('Claude Code', 'anthropics/claude-code@5cfc0a1 CHANGELOG.md, code.claude.com/docs/en/skills',
    ['claude']),
  codex: target('Codex', 'openai/codex@033d1d0 codex-rs/core-skills/src/loader.rs, serde_yaml', [], '2026-11-28'),
  vscode: target(
    'VS Code', 'microsoft/vscode promptSyntax/languageProviders/promptValidator.ts', ['vs-code', 'copilot']
  ),
  'gemini-cli': target('Gemini CLI', 'google-gemini/gemini-cli@5411f11 packages/core/src/skills/skillLoader.ts',
    ['gemini']),
  opencode: target('OpenCode', 'anomalyco/opencode packages/opencode/src/skill/index.ts, config/markdown.ts'),
  goose: target(
    'goose', 'block/goose@013ab84 crates/goose/src/skills/mod.rs, src/sources.rs, serde_yaml', [], '2026-11-28'
  ),
  'skills-cli': target('skills CLI', 'npm skills 1.7.4 dist/cli.mjs', ['skills']),
  'gh-skill': target('gh skill publish', 'cli.github.com/manual/gh_skill_publish', ['gh', 'gh-skill-publish']),
  mcp: target('Skills over MCP, as this service lists them', 'npm @modelcontextprotocol/server 2.4.0'),
  'discovery-0.1.0': target('Well-known index 0.1.0', 'npm skills 1.5.18'),
  'discovery-0.2.0': target('Well-known index 0.2.0', 'npm skills 1.7.4')
} as const satisfies Readonly<Record<string, Target>>

export type TargetName = keyof typeof TARGETS

export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[]

const BY_ANY_NAME: ReadonlyMap<string, TargetName> = new Map(Object.entries<Target>(TARGETS).flatMap(
  ([name, { aliases }]) => [name, ...aliases].map((each) => [each, name as TargetName] as const)))

/**
 * Reads a list of targets: names or aliases with commas between them, or `all`. `_` counts as `-`.
 * @returns in the order of TARGETS, each once; or the word that names no target
 */
export function parseTargets (text: string): readonly TargetName[] | { readonly unknown: string } {
  const chosen = new Set<TargetName>()
  for (const part of text.split(',')) {
    const word = part.trim().toLowerCase().replaceAll('_', '-')
    if (word === '') continue
    if (word === 'all') return TARGET_NAMES
    const name = BY_ANY_NAME.get(word)
    if (name === undefined) return { unknown: part.trim() }
    chosen.add(name)
  }
  return chosen.size === 0 ? { unknown: text } : TARGET_NAMES.filter((name) => chosen.has(name))
}
