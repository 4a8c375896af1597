import { type FindingCode, FINDINGS, preventsUse } from '../core/format/findings.ts'
import type { ConditionName } from './conditions.ts'
import type { Outcome, TargetName } from './targets.ts'

/**
 * What targets do with a skill that has one of these findings; a target without an outcome takes it, or nothing is
 * known.
 */
type OutcomeRow = Readonly<Partial<Record<Exclude<Outcome, 'ok'>, readonly TargetName[]>>> & {
  readonly codes: readonly FindingCode[]
  /** Counts only for skills of which this is true. */
  readonly when?: ConditionName
}

const STRICT = ['spec', 'skills-ref', 'quick-validate', 'gh-skill'] as const
const UPLOADS = ['anthropic-upload', 'openai-upload'] as const
const AGENTS = ['claude-code', 'codex', 'vscode', 'gemini-cli', 'opencode', 'goose', 'skills-cli'] as const
const INDEXES = ['discovery-0.1.0', 'discovery-0.2.0'] as const

/** Targets that mostly agree, by what the documents call them. */
export const TARGET_GROUPS = { validators: STRICT, uploads: UPLOADS, agents: AGENTS, indexes: INDEXES } as const

/**
 * The rules of all clients, as data: a change of a client is a change of a row. Besides, a finding that prevents the
 * use of a skill keeps it out of MCP's list and of both indexes.
 */
const ROWS: readonly OutcomeRow[] = [
  // The main file.
  {
    codes: [
      'main_file_missing', 'main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable',
      'main_file_not_utf8', 'main_file_link_text'
    ],
    refused: [...STRICT, ...UPLOADS],
    not_loaded: AGENTS
  },
  // Limits of this service, which other readers do not have.
  { codes: ['main_file_too_large', 'frontmatter_too_large'], refused: ['spec'] },
  { codes: ['yaml_refused'], refused: ['spec', 'skills-ref'] },
  {
    codes: [
      'main_file_casing'
    ],
    refused: ['spec', 'quick-validate', 'anthropic-upload', 'gh-skill'],
    not_loaded: [...AGENTS, 'mcp']
  },
  { codes: ['main_file_casing'], when: 'main_file_not_lower_case', refused: ['skills-ref', 'openai-upload'] },
  { codes: ['main_file_ambiguous'], warned: ['spec'], not_loaded: INDEXES },

  // The frontmatter as a whole.
  {
    codes: [
      'frontmatter_missing', 'frontmatter_not_first', 'frontmatter_unclosed', 'frontmatter_empty',
      'frontmatter_not_mapping', 'fence_unusual', 'line_ends_cr'
    ],
    refused: [...STRICT, ...UPLOADS],
    not_loaded: ['codex', 'gemini-cli', 'opencode', 'goose', 'skills-cli'],
    changed: ['claude-code'],
    warned: ['vscode']
  },
  {
    codes: ['yaml_invalid', 'yaml_repaired'],
    refused: [...STRICT, 'anthropic-upload'],
    not_loaded: ['codex', 'goose', 'skills-cli', ...INDEXES],
    changed: ['claude-code', 'gemini-cli'],
    warned: ['vscode']
  },
  // Its second attempt takes values with a colon as text.
  { codes: ['yaml_invalid', 'yaml_repaired'], when: 'refused_by_opencode', not_loaded: ['opencode'] },
  { codes: ['yaml_repaired'], when: 'refused_by_mcp', not_loaded: ['mcp'] },
  { codes: ['byte_order_mark'], refused: ['skills-ref', 'quick-validate'], not_loaded: ['codex', 'gemini-cli'] },
  { codes: ['frontmatter_flow_style'], refused: ['skills-ref'] },
  { codes: ['frontmatter_flow_style'], when: 'line_refused_by_mcp', not_loaded: ['mcp'] },
  {
    codes: [
      'metadata_not_mapping', 'metadata_not_text', 'allowed_tools_list'
    ],
    when: 'field_in_brackets',
    refused: ['skills-ref']
  },
  {
    codes: [
      'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'allowed_tools_not_text'
    ],
    when: 'field_is_no_scalar',
    refused: ['skills-ref']
  },

  // The name.
  {
    codes: ['name_missing'],
    refused: [...STRICT, ...UPLOADS],
    not_loaded: [
      'gemini-cli', 'opencode', 'goose', 'skills-cli'
    ],
    changed: ['claude-code', 'codex'],
    warned: ['vscode']
  },
  {
    codes: ['name_not_text'],
    refused: ['spec', 'quick-validate', 'anthropic-upload'],
    not_loaded: ['opencode', 'skills-cli'],
    changed: ['claude-code', 'gemini-cli'],
    warned: ['vscode']
  },
  // They take any scalar as text.
  { codes: ['name_not_text', 'description_not_text'], when: 'field_is_no_scalar', not_loaded: ['codex', 'goose'] },
  { codes: ['name_too_long'], refused: [...STRICT, 'anthropic-upload'], not_loaded: ['codex'] },
  {
    codes: [
      'name_invalid_characters'
    ],
    refused: ['spec', 'quick-validate', 'anthropic-upload', 'gh-skill'],
    warned: ['vscode']
  },
  { codes: ['name_invalid_characters'], when: 'name_not_letters', refused: ['skills-ref'] },
  { codes: ['name_invalid_characters'], when: 'name_has_slash', not_loaded: ['goose'] },
  { codes: ['name_invalid_characters'], when: 'name_not_for_paths', changed: ['gemini-cli'] },
  { codes: ['name_edge_hyphen', 'name_double_hyphen'], refused: [...STRICT, 'anthropic-upload'] },
  {
    codes: [
      'name_folder_mismatch'
    ],
    refused: ['spec', 'skills-ref', 'gh-skill'],
    changed: ['claude-code'],
    warned: ['vscode']
  },
  // In its source it has the right name.
  { codes: ['name_prefixed'], refused: ['skills-ref', 'gh-skill'], changed: ['claude-code'], warned: ['vscode'] },
  {
    codes: [
      'name_too_long', 'name_edge_hyphen', 'name_double_hyphen'
    ],
    when: 'name_differs_from_folder',
    changed: ['claude-code'],
    warned: ['vscode']
  },
  {
    codes: [
      'name_invalid_characters'
    ],
    when: 'name_differs_from_folder',
    refused: ['skills-ref'],
    changed: ['claude-code']
  },
  { codes: ['name_not_text'], when: 'name_differs_from_folder', refused: ['skills-ref'] },
  { codes: ['name_reserved_word'], refused: ['anthropic-upload'] },
  { codes: ['name_folder_mismatch'], when: 'name_has_reserved_word', refused: ['anthropic-upload'] },

  // The description.
  {
    codes: ['description_missing'],
    refused: [...STRICT, ...UPLOADS],
    not_loaded: ['codex', 'gemini-cli', 'skills-cli'],
    // OpenCode loads it for use by hand only.
    changed: ['claude-code', 'opencode'],
    warned: ['vscode']
  },
  {
    codes: [
      'description_not_text'
    ],
    refused: ['spec', 'quick-validate'],
    not_loaded: ['opencode', 'skills-cli'],
    changed: ['gemini-cli']
  },
  { codes: ['description_too_long'], refused: [...STRICT, 'anthropic-upload'], not_loaded: ['codex'] },
  { codes: ['description_too_long'], when: 'listing_too_long', cut: ['claude-code'] },
  { codes: ['when_to_use_too_long'], cut: ['claude-code'] },
  { codes: ['description_xml_tag'], refused: ['quick-validate', 'anthropic-upload'] },
  { codes: ['description_angle_bracket'], refused: ['quick-validate'] },
  { codes: ['description_block_scalar', 'description_not_one_line'], warned: ['gemini-cli'] },
  {
    codes: [
      'description_block_scalar', 'description_not_one_line'
    ],
    when: 'description_has_line_break',
    changed: ['codex']
  },

  // Other fields.
  { codes: ['license_not_text', 'allowed_tools_not_text'], warned: ['spec'] },
  { codes: ['compatibility_not_text'], refused: ['spec', 'quick-validate'], not_loaded: ['mcp'] },
  { codes: ['compatibility_empty'], warned: ['spec'], not_loaded: ['mcp'] },
  { codes: ['compatibility_too_long'], refused: ['spec', 'skills-ref', 'quick-validate'], not_loaded: ['mcp'] },
  { codes: ['metadata_not_mapping'], refused: ['spec'], not_loaded: ['codex', 'goose', 'mcp'], warned: ['vscode'] },
  { codes: ['metadata_not_text'], warned: ['spec'], not_loaded: ['mcp'] },
  { codes: ['allowed_tools_list'], refused: ['gh-skill'], warned: ['spec', 'vscode'] },
  { codes: ['unknown_fields'], refused: ['skills-ref', 'quick-validate'] },
  { codes: ['unknown_fields'], when: 'field_unknown_to_vscode', warned: ['vscode'] },
  { codes: ['nobody_can_invoke'], not_loaded: ['claude-code'] },
  { codes: ['vendored_copy'], refused: ['gh-skill'] },

  // Body and files.
  { codes: ['body_empty'], warned: ['spec'] },
  { codes: ['body_link_missing'], warned: ['spec', 'vscode'] },
  { codes: ['body_link_outside'], warned: ['spec'] },
  { codes: ['nested_skills'], refused: UPLOADS, cut: ['goose'], warned: ['skills-cli'] },
  { codes: ['upload_too_large'], when: 'too_large_for_anthropic', refused: ['anthropic-upload'] },
  { codes: ['upload_too_large'], when: 'too_large_for_openai', refused: ['openai-upload'] },

  // What this service's own doors ask.
  {
    codes: [
      'mcp_skill_invalid', 'mcp_refused', 'mcp_main_file_casing', 'mcp_file_too_large', 'mcp_too_many_files'
    ],
    not_loaded: ['mcp']
  },
  { codes: ['mcp_limits_exceeded'], warned: ['mcp'] },
  {
    codes: [
      'discovery_skill_invalid', 'discovery_main_file_missing', 'discovery_main_file_ambiguous',
      'discovery_frontmatter_repaired', 'discovery_frontmatter_differs', 'discovery_path_unsafe'
    ],
    not_loaded: INDEXES
  },
  {
    codes: [
      'discovery_frontmatter_differs'
    ],
    when: 'opening_fence_has_blanks',
    refused: ['quick-validate'],
    not_loaded: ['mcp']
  },
  { codes: ['discovery_path_not_plain'], not_loaded: ['discovery-0.1.0'] },
  { codes: ['discovery_description_too_long', 'discovery_archive_too_large'], not_loaded: ['discovery-0.2.0'] },
  { codes: ['discovery_file_large'], cut: ['discovery-0.1.0'] },
  { codes: ['discovery_internal'], warned: ['skills-cli', ...INDEXES] }
]

/** An outcome of one target, and when it counts. */
interface PossibleOutcome {
  readonly target: TargetName
  readonly outcome: Outcome
  readonly when: ConditionName | undefined
}

/** The outcomes of each code. A code without any concerns every reader of the skill. */
export const OUTCOMES_BY_CODE: ReadonlyMap<string, readonly PossibleOutcome[]> = byCode()

function byCode (): Map<string, PossibleOutcome[]> {
  const all = new Map<string, PossibleOutcome[]>()
  const add = (code: string, possible: PossibleOutcome): void => {
    const known = all.get(code)
    if (known === undefined) all.set(code, [possible])
    else known.push(possible)
  }
  for (const { codes, when, ...outcomes } of ROWS) {
    for (const [outcome, targets] of Object.entries(outcomes) as ReadonlyArray<[Outcome, readonly TargetName[]]>) {
      for (const code of codes) for (const target of targets) add(code, { target, outcome, when })
    }
  }
  for (const [code, [severity]] of Object.entries(FINDINGS)) {
    if (preventsUse({ code, severity })) {
      for (const target of ['mcp', ...INDEXES] as const) add(code, { target, outcome: 'not_loaded', when: undefined })
    }
  }
  return all
}
