import { anthropicUpload } from './clients/anthropic-upload.ts'
import { claudeCode } from './clients/claude-code.ts'
import { type Client, GROUPS, OUTCOMES, type Outcome } from './clients/client.ts'
import { codex } from './clients/codex.ts'
import { discovery010, discovery020 } from './clients/discovery.ts'
import { geminiCli } from './clients/gemini-cli.ts'
import { ghSkill } from './clients/gh-skill.ts'
import { goose } from './clients/goose.ts'
import { mcp } from './clients/mcp.ts'
import { openaiUpload } from './clients/openai-upload.ts'
import { opencode } from './clients/opencode.ts'
import { quickValidate } from './clients/quick-validate.ts'
import { skillsCli } from './clients/skills-cli.ts'
import { skillsRef } from './clients/skills-ref.ts'
import { spec } from './clients/spec.ts'
import { vscode } from './clients/vscode.ts'
import type { ConditionName } from './conditions.ts'

export { type Client as Target, OUTCOMES, type Outcome }

/** Every target by its name, in the order of reports. */
export const TARGETS = {
  spec,
  'skills-ref': skillsRef,
  'quick-validate': quickValidate,
  'anthropic-upload': anthropicUpload,
  'openai-upload': openaiUpload,
  'claude-code': claudeCode,
  codex,
  vscode,
  'gemini-cli': geminiCli,
  opencode,
  goose,
  'skills-cli': skillsCli,
  'gh-skill': ghSkill,
  mcp,
  'discovery-0.1.0': discovery010,
  'discovery-0.2.0': discovery020
} as const satisfies Readonly<Record<string, Client>>

export type TargetName = keyof typeof TARGETS

export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[]

const CLIENTS: ReadonlyArray<readonly [TargetName, Client]> = TARGET_NAMES.map((name) => [name, TARGETS[name]])

/** Groups of targets that mostly agree; a caller may choose a group by its name. */
export const TARGET_GROUPS = Object.fromEntries(GROUPS.map((group) =>
  [group, CLIENTS.flatMap(([name, client]) => client.group === group ? name : [])]))

const BY_WORD: ReadonlyMap<string, readonly TargetName[]> = new Map([
  ...TARGET_NAMES.map((name) => [name, [name]] as const),
  ...Object.entries(TARGET_GROUPS),
  ['all', TARGET_NAMES]
])

/** Words that callers may use for targets. */
export const TARGET_WORDS = [...BY_WORD.keys()]

/** Outcome of a finding for one target, with its condition on the skill, if there is one. */
export interface PossibleOutcome {
  readonly target: TargetName
  readonly outcome: Outcome
  readonly when?: ConditionName
}

/** Possible outcomes by code. Every client is warned of YAML that is not portable: its parser is not known. */
const POSSIBLE = new Map<string, PossibleOutcome[]>([
  ['yaml_not_portable', TARGET_NAMES.map((target) => ({ target, outcome: 'warned' }))]
])
for (const [target, { outcomes }] of CLIENTS) {
  for (const outcome of OUTCOMES) {
    for (const rule of outcome === 'ok' ? [] : outcomes[outcome] ?? []) {
      const { code, ...rest } = typeof rule === 'string' ? { code: rule } : rule
      POSSIBLE.set(code, [...POSSIBLE.get(code) ?? [], { target, outcome, ...rest }])
    }
  }
}

/** Returns the possible outcomes of a code. A finding without any concerns every reader of the skill. */
export function outcomesOf (code: string): readonly PossibleOutcome[] {
  return POSSIBLE.get(code) ?? []
}

/**
 * Reads a list of targets: names or groups with commas between them, or `all`.
 * @returns the targets in the order of TARGETS, each once; or the word that is not a target
 */
export function parseTargets (text: string): readonly TargetName[] | { readonly unknown: string } {
  const words = text.split(',').map((word) => word.trim()).filter((word) => word !== '')
  const named = words.map((word) => BY_WORD.get(word.toLowerCase()))
  const unknown = words.length === 0 ? text : words[named.indexOf(undefined)]
  if (unknown !== undefined) return { unknown }
  return TARGET_NAMES.filter((name) => named.some((names) => names?.includes(name)))
}
