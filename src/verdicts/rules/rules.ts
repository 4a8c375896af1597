import { type Position, quoteList } from '../../core/format/findings.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import { isJsonObject, own, ownText } from '../../core/shared/json.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { CONDITIONS } from '../conditions.ts'
import { finding, type FindingCode } from '../findings.ts'
import { MAX_CLAUDE_LISTING_CHARACTERS } from '../limits.ts'
import { frontmatterOf, type Subject } from '../subject.ts'
import { bodyFindings } from './body.ts'
import { fileFindings } from './files.ts'
import { scanText } from './text-scan.ts'
import { portabilityFindings } from './portable-yaml.ts'

/** Keys that installers write into `metadata`: `gh skill` writes `github-*` and `local-path`. */
export const INSTALLER_KEY = /^(?:github-.+|local-path)$/

/** Values that Claude Code reads as true and false. */
export const YES: ReadonlySet<unknown> = new Set([true, 1, 'true', 'yes', 'on', '1'])
export const NO: ReadonlySet<unknown> = new Set([false, 0, 'false', 'no', 'off', '0'])

/** Finds mistakes that matter only to some targets, and not to the format itself. Pure, never throws. */
export function targetFindings (subject: Subject): readonly Finding[] {
  const { skill: { findings }, mainFile, files } = subject
  const isText = mainFile !== undefined && findings.every(({ code }) => code !== 'main_file_not_utf8')
  return [
    ...isText ? [...portabilityFindings(mainFile), ...bodyFindings(mainFile, files), ...scanText(`${mainFile}`)] : [],
    ...checkFields(subject),
    ...fileFindings(subject)
  ]
}

function * checkFields (subject: Subject): Generator<Finding> {
  const { frontmatter, findings } = subject.skill
  const has = (searched: FindingCode) => findings.some(({ code }) => code === searched)
  const description = ownText(frontmatter, 'description')
  if (/[<>]/.test(description) && !has('description_xml_tag')) {
    yield finding('description_angle_bracket', 'description contains an angle bracket',
      "Write description without '<' and '>'", 'description')
  }
  const source = frontmatterOf(subject) ?? ''
  const [code, shape] = description === '' ? [] : shapeOf(source, fieldPositions(source).get('description'))
  if (code !== undefined) {
    yield finding(code, `description ${shape}`, 'Write description in one line, in double quotes if it has a colon',
      'description')
  }
  if (CONDITIONS.listing_too_long(subject) && !has('description_too_long')) {
    const sentence = `description and when_to_use together have more than ${MAX_CLAUDE_LISTING_CHARACTERS} characters`
    yield finding('when_to_use_too_long', sentence, 'Shorten when_to_use', 'when_to_use')
  }
  const metadata = own(frontmatter, 'metadata')
  const vendored = Object.keys(isJsonObject(metadata) ? metadata : {}).filter((key) => INSTALLER_KEY.test(key))
  if (vendored.length > 0) {
    yield finding('vendored_copy', `metadata says that an installer made this copy: ${quoteList(vendored)}`,
      'Fix the original, or remove these entries if this is the original now', 'metadata')
  }
  if (YES.has(own(frontmatter, 'disable-model-invocation')) && NO.has(own(frontmatter, 'user-invocable'))) {
    yield finding('nobody_can_invoke',
      'disable-model-invocation and user-invocable together leave nobody who may invoke the skill',
      'Remove one of disable-model-invocation and user-invocable', 'user-invocable')
  }
}

/** Returns how a description is written, where some readers misread it. */
function shapeOf (source: string, position: Position | undefined): readonly [code?: FindingCode, shape?: string] {
  if (position === undefined) return []
  const [first = '', ...others] = source.split('\n').slice(position.line - 2)
  if (/^[|>]/.test(first.slice(position.column - 1))) {
    const shape = "is written as a block after '|' or '>', of which some validators read only the mark"
    return ['description_block_scalar', shape]
  }
  // Blank lines inside a value are line breaks.
  const isContinued = /^[ \t]+[^\s#]/.test(others.find((line) => line.trim() !== '') ?? '')
  return isContinued ? ['description_not_one_line', 'has several lines'] : []
}
