import { preventsUse } from '../core/format/findings.ts'
import type { ConditionName } from './conditions.ts'
import { type FindingCode, FINDINGS } from './findings.ts'
import type { Outcome, TargetName } from './targets.ts'

type Outcomes = Readonly<Partial<Record<Exclude<Outcome, 'ok'>, readonly TargetName[]>>>

/** What targets do with a skill that has one of these findings; others take it. A condition limits the row. */
type OutcomeRow = readonly [codes: readonly FindingCode[], outcomes: Outcomes, when?: ConditionName]

const STRICT = ['spec', 'skills-ref', 'quick-validate', 'gh-skill'] as const
const UPLOADS = ['anthropic-upload', 'openai-upload'] as const
const AGENTS = ['claude-code', 'codex', 'vscode', 'gemini-cli', 'opencode', 'goose', 'skills-cli'] as const
const INDEXES = ['discovery-0.1.0', 'discovery-0.2.0'] as const

/** Targets that mostly agree, by what the documents call them. */
export const TARGET_GROUPS = { validators: STRICT, uploads: UPLOADS, agents: AGENTS, indexes: INDEXES } as const

const UNUSABLE = (Object.keys(FINDINGS) as FindingCode[])
  .filter((code) => preventsUse({ code, severity: FINDINGS[code][0] }))

const NO_FRONTMATTER = [
  'frontmatter_missing', 'frontmatter_unclosed', 'frontmatter_empty', 'frontmatter_not_mapping', 'fence_unusual'
] as const
const NO_YAML = ['yaml_invalid', 'yaml_repaired'] as const

/**
 * The rules of all clients, as data. Each comes from the `source` of its target; those about YAML are compared with the
 * parsers of seven clients in test/verdicts/real-readers.test.ts.
 */
const ROWS: readonly OutcomeRow[] = [
  // The main file.
  [['main_file_missing', 'main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable',
    'main_file_not_utf8', 'main_file_link_text'],
  { refused: [...STRICT, ...UPLOADS], not_loaded: AGENTS }],
  // Limits of this service, which other readers do not have.
  [['main_file_too_large', 'frontmatter_too_large'], { refused: ['spec'] }],
  [['yaml_refused'], { refused: ['spec', 'skills-ref'] }],
  [['main_file_casing'],
    { refused: ['spec', 'quick-validate', 'anthropic-upload', 'gh-skill'], not_loaded: [...AGENTS, 'mcp'] }],
  [['main_file_casing'], { refused: ['skills-ref', 'openai-upload'] }, 'main_file_not_lower_case'],
  [['main_file_ambiguous'], { warned: ['spec'], not_loaded: INDEXES }],

  // Claude Code goes by the folder and the body, and VS Code marks the place.
  [[...NO_FRONTMATTER, 'frontmatter_not_first', 'line_ends_cr', ...NO_YAML, 'name_missing', 'name_not_text',
    'name_folder_mismatch', 'name_prefixed', 'description_missing'],
  { changed: ['claude-code'], warned: ['vscode'] }],

  // The frontmatter as a whole.
  [[...NO_FRONTMATTER, 'frontmatter_not_first', 'line_ends_cr'],
    { refused: ['spec', 'gh-skill', ...UPLOADS], not_loaded: ['codex', 'gemini-cli', 'opencode', 'skills-cli'] }],
  // Python reads a bare carriage return as a line end, and goose takes the first two '---', wherever they are.
  [[...NO_FRONTMATTER, 'frontmatter_not_first'], { refused: ['skills-ref', 'quick-validate'] }],
  [NO_FRONTMATTER, { not_loaded: ['goose'] }],
  [NO_YAML, { refused: ['spec', 'skills-ref', 'gh-skill', 'anthropic-upload'], not_loaded: INDEXES }],
  [NO_YAML, { refused: ['quick-validate'] }, 'refused_by_pyyaml'],
  [NO_YAML, { not_loaded: ['codex', 'goose'] }, 'refused_by_libyaml'],
  [NO_YAML, { not_loaded: ['skills-cli'] }, 'refused_by_yaml'],
  // js-yaml 4 has more tags than YAML 1.2. What it refuses is read line by line.
  [NO_YAML, { changed: ['gemini-cli'] }, 'refused_by_js_yaml'],
  // js-yaml 3, and a second attempt that takes values with a colon as text.
  [NO_YAML, { not_loaded: ['opencode'] }, 'refused_by_opencode'],
  [['yaml_repaired'], { not_loaded: ['mcp'] }, 'refused_by_mcp'],
  [['byte_order_mark'], { refused: ['skills-ref', 'quick-validate'], not_loaded: ['codex', 'gemini-cli'] }],
  // strictyaml has no lists in brackets, anchors and tags, and with PyYAML no tabs; libyaml has no escaped halves.
  [['frontmatter_flow_style', 'anchor_or_tag', 'tab_in_value'], { refused: ['skills-ref'] }],
  [['frontmatter_flow_style', 'anchor_or_tag'], { not_loaded: ['mcp'] }, 'line_refused_by_mcp'],
  [['tab_in_value'], { refused: ['quick-validate'] }],
  [['half_character'], { warned: ['spec'] }],
  [['half_character', 'escaped_surrogates'], { not_loaded: ['codex', 'goose'] }],
  // Each by its own parser: PyYAML, js-yaml 3, js-yaml 4, yaml.
  [['text_ambiguous'], { refused: ['quick-validate'] }, 'not_text_to_pyyaml'],
  [['text_ambiguous'], { not_loaded: ['opencode'] }, 'not_text_to_js_yaml_3'],
  [['text_ambiguous'], { changed: ['gemini-cli'] }, 'not_text_to_js_yaml_4'],
  [['text_ambiguous'], { not_loaded: ['skills-cli'] }, 'value_is_infinite'],
  [['license_not_text', 'metadata_not_mapping', 'metadata_not_text', 'allowed_tools_list'],
    { refused: ['skills-ref'] }, 'field_in_brackets'],
  [['name_not_text', 'description_not_text', 'compatibility_not_text', 'allowed_tools_not_text'],
    { refused: ['skills-ref'] }, 'field_is_no_scalar'],

  // The name.
  [['name_missing', 'description_missing'],
    { refused: ['spec', 'skills-ref', 'gh-skill', ...UPLOADS], not_loaded: ['skills-cli'] }],
  [['name_missing'], { not_loaded: ['goose'], changed: ['codex'] }],
  [['name_missing'], { refused: ['quick-validate'], not_loaded: ['gemini-cli', 'opencode'] }, 'field_is_absent'],
  [['description_missing'],
    { refused: ['quick-validate'], not_loaded: ['gemini-cli'], changed: ['opencode'] }, 'field_is_absent'],
  // Gemini CLI's line reader takes as text what stands there, or nothing.
  [['name_missing', 'description_missing'],
    { refused: ['quick-validate'], not_loaded: ['opencode'], changed: ['gemini-cli'] }, 'field_is_null'],
  [['name_not_text'],
    { refused: ['spec', 'quick-validate', 'anthropic-upload'], not_loaded: ['opencode', 'skills-cli'] }],
  [['name_not_text'], { changed: ['gemini-cli'] }],
  // They take any scalar as text.
  [['name_not_text', 'description_not_text'], { not_loaded: ['codex', 'goose'] }, 'field_is_no_scalar'],
  [['name_too_long'], { refused: [...STRICT, 'anthropic-upload'], not_loaded: ['codex'] }],
  [['name_invalid_characters'],
    { refused: ['spec', 'anthropic-upload', 'gh-skill'], warned: ['vscode'] }],
  [['name_invalid_characters'], { refused: ['quick-validate'] }, 'trimmed_name_invalid'],
  [['name_invalid_characters'], { refused: ['skills-ref'] }, 'name_not_letters'],
  [['name_invalid_characters'], { not_loaded: ['goose'] }, 'name_has_slash'],
  [['name_invalid_characters'], { changed: ['gemini-cli'] }, 'name_not_for_paths'],
  [['name_edge_hyphen', 'name_double_hyphen'], { refused: [...STRICT, 'anthropic-upload'] }],
  [['name_folder_mismatch'], { refused: ['spec'] }],
  // A prefixed name is the right one in its source.
  [['name_folder_mismatch', 'name_prefixed'], { refused: ['skills-ref', 'gh-skill'] }],
  [['name_too_long', 'name_edge_hyphen', 'name_double_hyphen'],
    { changed: ['claude-code'], warned: ['vscode'] }, 'name_differs_from_folder'],
  [['name_invalid_characters'], { refused: ['skills-ref'], changed: ['claude-code'] }, 'name_differs_from_folder'],
  [['name_not_text'], { refused: ['skills-ref'] }, 'name_differs_from_folder'],
  [['name_reserved_word'], { refused: ['anthropic-upload'] }],
  [['name_folder_mismatch'], { refused: ['anthropic-upload'] }, 'name_has_reserved_word'],

  // The description.
  [['description_missing'], { not_loaded: ['codex'] }],
  [['description_not_text'],
    { refused: ['spec', 'quick-validate'], not_loaded: ['opencode', 'skills-cli'], changed: ['gemini-cli'] }],
  [['description_too_long'], { refused: [...STRICT, 'anthropic-upload'], not_loaded: ['codex'] }],
  [['description_too_long'], { cut: ['claude-code'] }, 'listing_too_long'],
  [['when_to_use_too_long'], { cut: ['claude-code'] }],
  [['description_xml_tag'], { refused: ['quick-validate', 'anthropic-upload'] }],
  [['description_angle_bracket'], { refused: ['quick-validate'] }],
  [['description_block_scalar', 'description_not_one_line'], { warned: ['gemini-cli'] }],
  [['description_block_scalar', 'description_not_one_line'], { changed: ['codex'] }, 'description_has_line_break'],

  // Other fields.
  [['license_not_text', 'allowed_tools_not_text'], { warned: ['spec'] }],
  [['compatibility_not_text'], { refused: ['spec', 'quick-validate'], not_loaded: ['mcp'] }],
  [['compatibility_empty'], { warned: ['spec'], not_loaded: ['mcp'] }],
  [['compatibility_too_long'], { refused: ['spec', 'skills-ref', 'quick-validate'], not_loaded: ['mcp'] }],
  [['metadata_not_mapping'], { refused: ['spec'], not_loaded: ['codex', 'goose', 'mcp'], warned: ['vscode'] }],
  [['metadata_not_text'], { warned: ['spec'], not_loaded: ['mcp'] }],
  [['allowed_tools_list'], { refused: ['gh-skill'], warned: ['spec', 'vscode'] }],
  [['unknown_fields'], { refused: ['skills-ref', 'quick-validate'] }],
  [['unknown_fields'], { warned: ['vscode'] }, 'field_unknown_to_vscode'],
  [['nobody_can_invoke'], { not_loaded: ['claude-code'] }],
  [['vendored_copy'], { refused: ['gh-skill'] }],

  // Body and files.
  [['body_empty'], { warned: ['spec'] }],
  [['body_link_missing'], { warned: ['spec', 'vscode'] }],
  [['body_link_outside'], { warned: ['spec'] }],
  [['nested_skills'], { refused: UPLOADS, cut: ['goose'], warned: ['skills-cli'] }],
  [['upload_too_large'], { refused: ['anthropic-upload'] }, 'too_large_for_anthropic'],
  [['upload_too_large'], { refused: ['openai-upload'] }, 'too_large_for_openai'],

  // What this service's own APIs ask.
  [UNUSABLE, { not_loaded: ['mcp', ...INDEXES] }],
  [['mcp_skill_invalid', 'mcp_refused', 'mcp_main_file_casing', 'mcp_file_too_large', 'mcp_too_many_files'],
    { not_loaded: ['mcp'] }],
  [['mcp_limits_exceeded'], { warned: ['mcp'] }],
  [['discovery_skill_invalid', 'discovery_main_file_missing', 'discovery_main_file_ambiguous',
    'discovery_frontmatter_repaired', 'discovery_frontmatter_differs', 'discovery_path_unsafe'],
  { not_loaded: INDEXES }],
  [['discovery_frontmatter_differs'],
    { refused: ['quick-validate'], not_loaded: ['gemini-cli', 'skills-cli', 'mcp'] }, 'opening_fence_has_blanks'],
  [['discovery_frontmatter_differs'], { refused: ['skills-ref'] }, 'opening_fence_has_tab'],
  [['discovery_path_not_plain'], { not_loaded: ['discovery-0.1.0'] }],
  [['discovery_description_too_long', 'discovery_archive_too_large'], { not_loaded: ['discovery-0.2.0'] }],
  [['discovery_file_large'], { cut: ['discovery-0.1.0'] }],
  [['discovery_internal'], { warned: ['skills-cli', ...INDEXES] }]
]

/** An outcome of one target, and when it counts. */
interface PossibleOutcome {
  readonly target: TargetName
  readonly outcome: Outcome
  readonly when: ConditionName | undefined
}

/** The outcomes of a code. One without any concerns every reader of the skill. */
export function outcomesOf (code: string): readonly PossibleOutcome[] {
  return ROWS.filter(([codes]) => codes.some((each) => each === code)).flatMap(([, outcomes, when]) =>
    (Object.entries(outcomes) as ReadonlyArray<[Outcome, readonly TargetName[]]>)
      .flatMap(([outcome, targets]) => targets.map((target) => ({ target, outcome, when }))))
}
