import type { CatalogSkill } from '../../src/core/shared/skill.ts'
import { describeSkill } from '../../src/core/read-skill.ts'
import { type Refusal, RefusedError } from '../../src/core/read/refused.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { type Verdicts, verdictsOf } from '../../src/verdicts/client-verdicts.ts'
import { subjectOf } from '../../src/verdicts/entry.ts'
import type { Subject } from '../../src/verdicts/subject.ts'
import { type Outcome, TARGET_NAMES, type TargetName } from '../../src/verdicts/targets.ts'

export interface SkillParts {
  readonly folder?: string
  /** Name in the source, if the name of the folder has a prefix. */
  readonly nameInSource?: string
  readonly text?: string
  /** Bytes of the main file, instead of a text. */
  readonly bytes?: Buffer | undefined
  readonly mainFile?: string
  /** Names of all main files of the folder. Default: `mainFile`, if there is a text. */
  readonly mainFiles?: readonly string[]
  /** Why the main file cannot be read. */
  readonly refusal?: Refusal
  /** Sizes of other files, by path. */
  readonly files?: Readonly<Record<string, number>>
}

/** Builds a skill in memory, as every API hands it to the rules. */
export async function subjectFor ({
  folder = 'demo', nameInSource, text, bytes = text === undefined
    ? undefined
    : Buffer.from(text), mainFile = 'SKILL.md', mainFiles = bytes === undefined
    ? []
    : [mainFile], refusal, files = {}
}: SkillParts): Promise<Subject> {
  const document = bytes && new FileContent(bytes)
  const skill: CatalogSkill = describeSkill({
    name: folder,
    type: 'project',
    path: `/skills/${folder}`,
    realPath: `/skills/${folder}`,
    linked: false,
    ...nameInSource !== undefined && { nameInSource }
  }, {
    mainFiles,
    main: document && { name: mainFile, content: document },
    ...refusal !== undefined && { refused: new RefusedError(refusal) }
  })
  const listed = Object.entries({ ...document !== undefined && { [mainFile]: document.bytes.length }, ...files }).map(
    ([path, size]) => ({ path, size_bytes: size }))
  return await subjectOf({ skill, manifest: { files: listed }, mainFile: document, fileFindings: [] })
}

export async function verdictsFor (parts: SkillParts, targets?: readonly TargetName[]): Promise<Verdicts> {
  return verdictsOf(await subjectFor(parts), targets)
}

/** A description that every target takes. */
export const D = 'description: What it is for'

export function text (...lines: readonly string[]): string {
  return `---\n${lines.map((line) => `${line}\n`).join('')}---\n# Demo\n`
}

export const GOOD: SkillParts = { text: text('name: demo', D) }
/**
 * Returns outcomes in short: `refused spec codex; warned vscode`. `invalid` stands for the targets of this service's
 * own lists.
 */
export function said (text: string): Partial<Record<TargetName, Outcome>> {
  const outcomes: Partial<Record<TargetName, Outcome>> = {}
  for (const part of text.replace('invalid', 'not_loaded mcp indexes')
    .replaceAll('indexes', 'discovery-0.1.0 discovery-0.2.0').split('; ')) {
    const [outcome, ...targets] = part.split(' ')
    for (const target of targets) outcomes[target as TargetName] = outcome as Outcome
  }
  return outcomes
}

export const long = (count: number): string => 'x'.repeat(count)

/** Outcomes of YAML that is not portable. */
export const EVERYBODY_WARNS: Readonly<Partial<Record<TargetName, Outcome>>> =
  Object.fromEntries(TARGET_NAMES.map((name) => [name, 'warned']))

type Rule = readonly [
  rule: string, parts: SkillParts, code: string, outcomes: Partial<Record<TargetName, Outcome>>
]

/**
 * The smallest skill that breaks each rule, the code of its finding, and the outcomes of targets. All other targets
 * accept it.
 */
export const RULES: readonly Rule[] = [
  ['main file SKILL.MD', { ...GOOD, mainFile: 'SKILL.MD' }, 'main_file_casing',
    said(
      'refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; not_loaded claude-code codex ' +
        'vscode gemini-cli opencode goose skills-cli mcp')],
  ['main file skill.md', { ...GOOD, mainFile: 'skill.md' }, 'main_file_casing',
    said(
      'refused spec quick-validate anthropic-upload gh-skill; not_loaded claude-code codex vscode gemini-cli ' +
        'opencode goose skills-cli mcp')],
  ['no frontmatter', { text: '# Demo\n' }, 'frontmatter_missing',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed ' +
        'claude-code; not_loaded codex gemini-cli opencode goose skills-cli; warned vscode')],
  ['byte order mark', { text: `\uFEFF${GOOD.text}` }, 'yaml_not_portable', EVERYBODY_WARNS],
  ['CRLF', { text: GOOD.text?.replaceAll('\n', '\r\n') ?? '' }, 'line_ends_crlf', {}],
  ['unquoted colon', { text: text('name: demo', 'description: Use when: asked') }, 'yaml_repaired', broken()],
  ['YAML that nobody reads', { text: text('name: demo', D, 'tags: "a" b') }, 'yaml_invalid', broken()],
  ['a tab', { text: text('name: demo', D, 'license: a\tb') }, 'yaml_not_portable', EVERYBODY_WARNS],
  ['a tag', { text: text('name: demo', D, 'license: !!str 5') }, 'yaml_not_portable',
    { ...EVERYBODY_WARNS, mcp: 'not_loaded' }],
  ['an escaped emoji', { text: text('name: demo', D, 'license: "\\ud83d\\ude00"') }, 'yaml_not_portable',
    EVERYBODY_WARNS],
  ['no name', { text: text(D) }, 'name_missing',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed claude-code ' +
        'codex; warned vscode; not_loaded gemini-cli opencode goose skills-cli')],
  ['name of 65 letters', { folder: long(65), text: text(`name: ${long(65)}`, D) }, 'name_too_long',
    said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; not_loaded codex')],
  ['name in capitals', { folder: 'Demo', text: text('name: Demo', D) }, 'name_invalid_characters',
    said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode')],
  ['name in another alphabet', { folder: '技能', text: text('name: 技能', D) }, 'name_invalid_characters',
    said('invalid; refused spec quick-validate anthropic-upload gh-skill; warned vscode')],
  ['name with a slash', { text: text('name: a/b', D) }, 'name_invalid_characters',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode; changed ' +
        'claude-code gemini-cli; not_loaded goose')],
  ['name with a colon', { text: text("name: 'a:b'", D) }, 'name_invalid_characters',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode; changed ' +
        'claude-code gemini-cli')],
  ['hyphen at the end', { folder: 'demo-', text: text('name: demo-', D) }, 'name_edge_hyphen', hyphens()],
  ['two hyphens', { folder: 'de--mo', text: text('name: de--mo', D) }, 'name_double_hyphen', hyphens()],
  ['another name than the folder', { text: text('name: other', D) }, 'name_folder_mismatch',
    said('invalid; refused spec skills-ref gh-skill; changed claude-code; warned vscode')],
  ['reserved word', { folder: 'claude-demo', text: text('name: claude-demo', D) }, 'name_reserved_word',
    { 'anthropic-upload': 'refused' }],
  ['name that is a number', { folder: '3000', text: text('name: 3000', D) }, 'name_not_text',
    said(
      'invalid; refused spec quick-validate anthropic-upload; changed claude-code gemini-cli; not_loaded opencode ' +
        'skills-cli; warned vscode')],
  ['no description', { text: text('name: demo') }, 'description_missing',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed claude-code ' +
        'opencode; not_loaded codex gemini-cli skills-cli; warned vscode')],
  ['description of 1,100 characters', { text: text('name: demo', `description: ${long(1_100)}`) },
    'description_too_long',
    said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; not_loaded codex')],
  ['description of 1,600 characters', { text: text('name: demo', `description: ${long(1_600)}`) },
    'description_too_long',
    said(
      'invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; cut claude-code; not_loaded codex')],
  ['tag in the description', { text: text('name: demo', 'description: a <b> c') }, 'description_xml_tag',
    { 'quick-validate': 'refused', 'anthropic-upload': 'refused' }],
  ['angle bracket in the description', { text: text('name: demo', 'description: a > b') },
    'description_angle_bracket', { 'quick-validate': 'refused' }],
  ['description as a folded block', { text: text('name: demo', 'description: >', '  one', '  two') },
    'description_block_scalar', { 'gemini-cli': 'warned' }],
  ['description as a literal block', { text: text('name: demo', 'description: |', '  one', '  two') },
    'description_block_scalar', { codex: 'changed', 'gemini-cli': 'warned' }],
  ['description over two lines', { text: text('name: demo', 'description: one', '  two') },
    'description_not_one_line', { 'gemini-cli': 'warned' }],
  ['metadata that is text', { text: text('name: demo', D, 'metadata: text') }, 'metadata_not_mapping',
    { spec: 'refused', codex: 'not_loaded', vscode: 'warned', goose: 'not_loaded', mcp: 'not_loaded' }],
  ['compatibility of 501 characters', { text: text('name: demo', D, `compatibility: ${long(501)}`) },
    'compatibility_too_long', said('refused spec skills-ref quick-validate; not_loaded mcp')],
  ['a skill inside', { ...GOOD, files: { 'inner/SKILL.md': 1 } }, 'nested_skills',
    { 'anthropic-upload': 'refused', 'openai-upload': 'refused', goose: 'cut', 'skills-cli': 'warned' }],
  ['30 MB', { ...GOOD, files: Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`${i}.bin`, 8_000_000])) },
    'upload_too_large', said('refused anthropic-upload; warned mcp; cut discovery-0.1.0')],
  ['501 files', { ...GOOD, files: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}.md`, 1])) },
    'upload_too_large', { 'openai-upload': 'refused' }],
  ['a copy of an installer', { text: text('name: demo', D, 'metadata:', '  github-repo: a/b') }, 'vendored_copy',
    { 'gh-skill': 'refused' }],
  ['a dead link', { text: `${GOOD.text}[a](b.md)\n` }, 'body_link_missing', { spec: 'warned', vscode: 'warned' }],
  ['a link that leaves', { text: `${GOOD.text}[a](../b.md)\n` }, 'body_link_outside', { spec: 'warned' }],
  ['a placeholder', { text: `${GOOD.text}Do $ARGUMENTS\n` }, 'body_placeholder', {}]
]

function broken (): Partial<Record<TargetName, Outcome>> {
  return said('invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; ' +
    'not_loaded codex opencode goose skills-cli; changed claude-code gemini-cli; warned vscode')
}

/** @param readers clients that read it nevertheless */
export function without (outcomes: Partial<Record<TargetName, Outcome>>,
  ...readers: readonly TargetName[]): Partial<Record<TargetName, Outcome>> {
  return Object.fromEntries(Object.entries(outcomes).filter(([target]) => !readers.includes(target as TargetName)))
}

function hyphens (): Partial<Record<TargetName, Outcome>> {
  return said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill')
}
