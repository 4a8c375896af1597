/** What a consumer does with a skill, the mildest first. A verdict is the worst outcome of all findings. */
export const OUTCOMES = ['ok', 'warned', 'changed', 'cut', 'not_loaded', 'refused'] as const

export type Outcome = typeof OUTCOMES[number]

/** A consumer of skills: a format, a validator, an agent, an upload service, an index. */
export interface Target {
  readonly title: string
  /** What its rules were read from. */
  readonly source: string
  /** The day on which they were read: targets change monthly. */
  readonly read: string
  /** Other names that a caller may use. */
  readonly aliases?: readonly string[]
}

const READ = '2026-11-22'

/** Every target by its name, in the order of reports. Their rules are in outcomes.ts. */
export const TARGETS = {
  spec: {
    title: 'Agent Skills format',
    source: 'agentskills/agentskills@69ef37e docs/specification.mdx',
    read: READ,
    aliases: ['format', 'agent-skills']
  },
  'skills-ref': {
    title: 'skills-ref, the reference validator', source: 'agentskills/agentskills@69ef37e skills-ref 0.1.0', read: READ
  },
  'quick-validate': {
    title: "quick_validate of Anthropic's skill-creator",
    source: 'anthropics/skills@9d2f1ae ' +
    'skills/skill-creator/scripts',
    read: READ
  },
  'anthropic-upload': {
    title: 'Upload to Anthropic',
    source: 'types of @anthropic-ai/sdk 1.12.0, and third-party ' +
    'texts',
    read: READ,
    aliases: ['anthropic']
  },
  'openai-upload': {
    title: 'Upload to OpenAI', source: 'types of openai 6.49.0, and third-party texts', read: READ, aliases: ['openai']
  },
  'claude-code': {
    title: 'Claude Code',
    source: 'anthropics/claude-code@5cfc0a1 CHANGELOG.md, ' +
    'code.claude.com/docs/en/skills',
    read: READ,
    aliases: ['claude']
  },
  codex: { title: 'Codex', source: 'openai/codex codex-rs/core-skills/src/loader.rs', read: READ },
  vscode: {
    title: 'VS Code',
    source: 'microsoft/vscode promptSyntax/languageProviders/promptValidator.ts',
    read: READ,
    aliases: ['vs-code', 'copilot']
  },
  'gemini-cli': {
    title: 'Gemini CLI',
    source: 'google-gemini/gemini-cli@5411f11 ' +
    'packages/core/src/skills/skillLoader.ts',
    read: READ,
    aliases: ['gemini']
  },
  opencode: { title: 'OpenCode', source: 'anomalyco/opencode packages/opencode/src/skill/index.ts', read: READ },
  goose: { title: 'goose', source: 'block/goose crates/goose/src/skills/mod.rs', read: READ },
  'skills-cli': { title: 'skills CLI', source: 'npm skills 1.7.4 dist/cli.mjs', read: READ, aliases: ['skills'] },
  'gh-skill': {
    title: 'gh skill publish',
    source: 'cli.github.com/manual/gh_skill_publish',
    read: READ,
    aliases: [
      'gh', 'gh-skill-publish'
    ]
  },
  mcp: {
    title: 'Skills over MCP, as this service lists them', source: 'npm @modelcontextprotocol/server 2.4.0', read: READ
  },
  'discovery-0.1.0': { title: 'Well-known index 0.1.0', source: 'npm skills 1.5.18', read: READ },
  'discovery-0.2.0': { title: 'Well-known index 0.2.0', source: 'npm skills 1.7.4', read: READ }
} as const satisfies Readonly<Record<string, Target>>

export type TargetName = keyof typeof TARGETS

export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[]

const BY_ANY_NAME: ReadonlyMap<string, TargetName> = new Map(Object.entries<Target>(TARGETS).flatMap(
  ([name, { aliases = [] }]) => [name, ...aliases].map((each) => [each, name as TargetName] as const)))

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
