import { FINDINGS, type FindingCode } from '../src/verdicts/findings.ts'
import { KNOWN_FIELDS, NAME_CHARACTERS, RESERVED_WORD, XML_TAG } from '../src/core/format/fields.ts'
import {
  MAX_COMPATIBILITY_CODE_POINTS, MAX_DESCRIPTION_CODE_POINTS, MAX_NAME_CODE_POINTS
} from '../src/core/shared/limits.ts'
import { type ConditionName, NOT_FOR_PATHS, VSCODE_FIELDS } from '../src/verdicts/conditions.ts'
import { MAX_CLAUDE_LISTING_CHARACTERS } from '../src/verdicts/limits.ts'
import { INSTALLER_KEY, NO, YES } from '../src/verdicts/rules/rules.ts'
import { type Outcome, outcomesOf, TARGET_NAMES, TARGETS, type TargetName } from '../src/verdicts/targets.ts'

/** JSON Schema of a rule: for one field, or for the whole frontmatter. */
interface Rule {
  readonly field?: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** `null` and `~` count as absent. */
const isText = { type: ['string', 'null'] }
const notMissing = (field: string): Readonly<Partial<Record<ConditionName | 'always', readonly Rule[]>>> => ({
  always: [{ schema: { required: [field] } }, { field, schema: { not: { type: 'null' }, pattern: '\\S' } }]
})
const onlyFields = (...fields: readonly string[]): readonly Rule[] => [{ schema: { propertyNames: { enum: fields } } }]

type RulesByCondition = Readonly<Partial<Record<ConditionName | 'always', readonly Rule[]>>>

/** The rules that a JSON Schema can express, by code and condition. Other rules need the file or its folder. */
const RULES: Readonly<Partial<Record<FindingCode, RulesByCondition>>> = {
  name_missing: notMissing('name'),
  name_not_text: { always: [{ field: 'name', schema: isText }] },
  name_too_long: { always: [{ field: 'name', schema: { maxLength: MAX_NAME_CODE_POINTS } }] },
  name_invalid_characters: {
    always: [{ field: 'name', schema: { pattern: NAME_CHARACTERS.source } }],
    name_not_letters: [{ field: 'name', schema: { pattern: '^(?:(?![\\p{Lu}\\p{Lt}])[\\p{L}\\p{N}-])*$' } }],
    name_has_slash: [{ field: 'name', schema: { not: { type: 'string', pattern: '/' } } }],
    name_not_for_paths: [{ field: 'name', schema: { not: { type: 'string', pattern: NOT_FOR_PATHS.source } } }]
  },
  name_edge_hyphen: { always: [{ field: 'name', schema: { not: { type: 'string', pattern: '^-|-$' } } }] },
  name_double_hyphen: { always: [{ field: 'name', schema: { not: { type: 'string', pattern: '--' } } }] },
  name_reserved_word: {
    always: [{ field: 'name', schema: { not: { type: 'string', pattern: RESERVED_WORD.source } } }]
  },
  description_missing: notMissing('description'),
  description_not_text: { always: [{ field: 'description', schema: isText }] },
  description_too_long: {
    always: [{ field: 'description', schema: { maxLength: MAX_DESCRIPTION_CODE_POINTS } }],
    listing_too_long: [{ field: 'description', schema: { maxLength: MAX_CLAUDE_LISTING_CHARACTERS } }]
  },
  description_xml_tag: {
    always: [{ field: 'description', schema: { not: { type: 'string', pattern: XML_TAG.source } } }]
  },
  description_angle_bracket: {
    always: [{ field: 'description', schema: { not: { type: 'string', pattern: '[<>]' } } }]
  },
  license_not_text: { always: [{ field: 'license', schema: isText }] },
  compatibility_not_text: { always: [{ field: 'compatibility', schema: isText }] },
  compatibility_empty: { always: [{ field: 'compatibility', schema: { minLength: 1 } }] },
  compatibility_too_long: {
    always: [{ field: 'compatibility', schema: { maxLength: MAX_COMPATIBILITY_CODE_POINTS } }]
  },
  metadata_not_mapping: { always: [{ field: 'metadata', schema: { type: ['object', 'null'] } }] },
  metadata_not_text: { always: [{ field: 'metadata', schema: { additionalProperties: { type: 'string' } } }] },
  allowed_tools_not_text: { always: [{ field: 'allowed-tools', schema: { type: ['string', 'array', 'null'] } }] },
  allowed_tools_list: { always: [{ field: 'allowed-tools', schema: { not: { type: 'array' } } }] },
  unknown_fields: {
    always: onlyFields(...KNOWN_FIELDS), field_unknown_to_vscode: onlyFields(...KNOWN_FIELDS, ...VSCODE_FIELDS)
  },
  vendored_copy: {
    always: [{ field: 'metadata', schema: { propertyNames: { not: { pattern: INSTALLER_KEY.source } } } }]
  },
  nobody_can_invoke: {
    always: [{
      schema: {
        not: {
          required: ['disable-model-invocation', 'user-invocable'],
          properties: { 'disable-model-invocation': { enum: [...YES] }, 'user-invocable': { enum: [...NO] } }
        }
      }
    }]
  }
}

/** Codes of findings that the schema of a target refuses. */
export function codesInSchema (target: TargetName): ReadonlySet<string> {
  return new Set(rulesOf(target).map(({ code }) => code))
}

/**
 * Returns the JSON Schema of the frontmatter for one target. It refuses what the target refuses or changes, as far as a
 * schema can.
 */
export function frontmatterSchema (target: TargetName): object {
  const rules = rulesOf(target)
  const ofField = (field: string | undefined) => rules.filter(({ rule }) => rule.field === field)
    .map(({ code, outcome, rule }) => ({ description: `${code} (${outcome}): ${FINDINGS[code][1]}`, ...rule.schema }))
  const fields = new Set([...KNOWN_FIELDS, ...rules.flatMap(({ rule: { field } }) => field ?? [])])
  return {
    title: `Frontmatter of a SKILL.md for ${TARGETS[target].title}`,
    description: `Rules of ${TARGETS[target].source}, read on ${TARGETS[target].read}. ` +
      `skillserve validate --target ${target} has those too that no schema can say.`,
    type: 'object',
    properties: Object.fromEntries(Array.from(fields, (field) => [field, allOf(ofField(field))])),
    ...allOf(ofField(undefined))
  }
}

/** Documents of the repository, by path. */
export const FRONTMATTER_SCHEMAS: Readonly<Record<string, object>> = Object.fromEntries(
  TARGET_NAMES.map((target) => [`openapi/frontmatter/${target}.schema.json`, frontmatterSchema(target)]))

function rulesOf (target: TargetName): ReadonlyArray<{
  readonly code: FindingCode
  readonly outcome: Outcome
  readonly rule: Rule
}> {
  return (Object.keys(RULES) as FindingCode[]).flatMap((code) => outcomesOf(code)
    .filter((possible) => possible.target === target)
    .flatMap(({ outcome, when }) => (RULES[code]?.[when ?? 'always'] ?? []).map((rule) => ({ code, outcome, rule }))))
}

function allOf (schemas: readonly object[]): object {
  return schemas.length === 0 ? {} : { allOf: schemas }
}
