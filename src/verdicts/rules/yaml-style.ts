import { COLLECTION_STYLE, EVENT_ID, type Event, parseEvents, SCALAR_STYLE } from 'js-yaml'
import { fieldPositions } from '../../core/format/positions.ts'
import { MAX_FRONTMATTER_DEPTH } from '../../core/shared/limits.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { finding, type FindingCode } from '../findings.ts'
import { frontmatterOf, type Subject } from '../subject.ts'

/** What YAML allows and some readers refuse: what stands there, and what to write instead. */
const STYLES = {
  frontmatter_flow_style: ['a list or mapping in brackets', 'Write lists and mappings as indented lines'],
  tab_in_value: ['a tab in or around a value without quotes', 'Write blanks instead of tabs'],
  anchor_or_tag: ['an anchor or a tag', "Remove the word that begins with '&' or '!'"],
  escaped_surrogates: ["a character that is written as two '\\u' escapes", 'Write the character itself']
} as const satisfies Partial<Record<FindingCode, readonly [what: string, fix: string]>>

type Style = keyof typeof STYLES

/** What asks for text in the place of a list or mapping: its fix takes the brackets away. */
const SHAPE_CODES: ReadonlySet<string> = new Set<FindingCode>([
  'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'metadata_not_mapping',
  'metadata_not_text', 'allowed_tools_not_text', 'allowed_tools_list'
])

/** A line with such a style, and the top-level field that it is in. */
interface StyledLine {
  readonly style: Style
  readonly line: number
  readonly field: string | undefined
}

/** The first line of each style, unless another finding is about it. */
export function styleFindings (source: string, others: readonly Finding[]): readonly Finding[] {
  const lines = styledLines(source).filter((each) => !others.some(({ code, field, line }) =>
    (code.startsWith('yaml_') && line === each.line) ||
    (code === 'half_character' && each.style === 'escaped_surrogates') ||
    (SHAPE_CODES.has(code) && field === each.field && each.style === 'frontmatter_flow_style')))
  return (Object.keys(STYLES) as Style[]).flatMap((style) => {
    const line = lines.find((each) => each.style === style)?.line
    const [what, fix] = STYLES[style]
    if (line === undefined) return []
    return finding(style, `line ${line} of SKILL.md has ${what}`, fix, undefined, { line, column: 1 })
  })
}

/** Whether the field that a finding is about has brackets, which stand in no finding of their own then. */
export function hasBrackets (subject: Subject, { field }: Finding): boolean {
  return field !== undefined && styledLines(frontmatterOf(subject) ?? '').some((each) =>
    each.field === field && each.style === 'frontmatter_flow_style')
}

/** @param source the frontmatter without its fences; what is no YAML has no such lines */
export function styledLines (source: string): readonly StyledLine[] {
  if (!/[[{\t&!\\]/.test(source)) return []
  const starts = new Map(Array.from(fieldPositions(source), ([field, { line }]) => [line, field]))
  let [line, offset, field] = [2, 0, starts.get(2)]
  try {
    // Events come in the order of the text.
    return parseEvents(source, { maxDepth: MAX_FRONTMATTER_DEPTH }).flatMap((event) => {
      const styles = stylesOf(event, source)
      const start = 'start' in event ? event.start : 'valueStart' in event ? event.valueStart : 0
      for (; styles.length > 0 && offset < start; offset++) {
        if (source[offset] !== '\n') continue
        line++
        field = starts.get(line) ?? field
      }
      return styles.map((style) => ({ style, line, field }))
    })
  } catch {
    return []
  }
}

function stylesOf (event: Event, source: string): readonly Style[] {
  if (!('tagStart' in event)) return []
  const styles: Style[] = event.anchorStart === -1 && event.tagStart === -1 ? [] : ['anchor_or_tag']
  if (event.type !== EVENT_ID.SCALAR) {
    return event.style === COLLECTION_STYLE.FLOW ? [...styles, 'frontmatter_flow_style'] : styles
  }
  const { style, valueStart, valueEnd } = event
  const isPlain = style === SCALAR_STYLE.PLAIN
  if (isPlain && source.slice(valueStart - 1, valueEnd + 1).includes('\t')) return [...styles, 'tab_in_value']
  const isQuoted = style === SCALAR_STYLE.DOUBLE_QUOTED
  return isQuoted && /\\ud[89ab]/i.test(source.slice(valueStart, valueEnd)) ? [...styles, 'escaped_surrogates'] : styles
}
