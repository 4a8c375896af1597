import { COLLECTION_STYLE, EVENT_ID, parseEvents } from 'js-yaml'
import type { FindingCode } from '../../core/format/findings.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import { MAX_FRONTMATTER_DEPTH } from '../../core/shared/limits.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { frontmatterOf, type Subject } from '../subject.ts'

/** What asks for text in the place of a list or mapping. */
export const SHAPE_CODES: ReadonlySet<string> = new Set<FindingCode>([
  'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'metadata_not_mapping',
  'metadata_not_text', 'allowed_tools_not_text', 'allowed_tools_list'
])

/** A line with a list or mapping in brackets, and the top-level field that it is in. */
interface FlowLine {
  readonly line: number
  readonly field: string | undefined
}

/** @param source the frontmatter without its fences */
export function flowLines (source: string): readonly FlowLine[] {
  if (!/[[{]/.test(source)) return []
  const starts = new Map(Array.from(fieldPositions(source), ([field, { line }]) => [line, field]))
  const lines = new Set(linesInBrackets(source))
  const found: FlowLine[] = []
  let field: string | undefined
  for (const index of source.split('\n').keys()) {
    const line = index + 2
    field = starts.get(line) ?? field
    if (lines.has(line)) found.push({ line, field })
  }
  return found
}

/** The lines in which lists and mappings in brackets begin; the opening fence is line 1. None of what is no YAML. */
function linesInBrackets (source: string): number[] {
  let [line, offset] = [2, 0]
  try {
    return parseEvents(source, { maxDepth: MAX_FRONTMATTER_DEPTH }).flatMap((event) => {
      const isCollection = event.type === EVENT_ID.SEQUENCE || event.type === EVENT_ID.MAPPING
      if (!isCollection || event.style !== COLLECTION_STYLE.FLOW) return []
      // Events come in the order of the text.
      for (; offset < event.start; offset++) if (source[offset] === '\n') line++
      return line
    })
  } catch {
    return []
  }
}

/** Whether the field that a finding is about has brackets, which stand in no finding of their own then. */
export function hasBrackets (subject: Subject, { field }: Finding): boolean {
  return field !== undefined && flowLines(frontmatterOf(subject) ?? '').some((each) => each.field === field)
}
