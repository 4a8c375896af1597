import type { FindingCode } from '../../core/format/findings.ts'
import { locateFrontmatter } from '../../core/format/frontmatter.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import type { Finding } from '../../core/ground/skill.ts'
import type { Subject } from '../subject.ts'

const FLOW_VALUE = /^\s*(?:-[ \t]+)*(?:[^\s#"'[{][^:]*:[ \t]+)?[[{]/

/** What asks for text in the place of a list or mapping. */
export const SHAPE_CODES: ReadonlySet<string> = new Set<FindingCode>([
  'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'metadata_not_mapping', 'metadata_not_text', 'allowed_tools_not_text',
  'allowed_tools_list'
])

/** A line with a list or mapping in brackets, and the top-level field that it is in. */
interface FlowLine {
  readonly line: number
  readonly field: string | undefined
}

/** @param source the frontmatter without its fences */
export function flowLines (source: string): readonly FlowLine[] {
  const starts = new Map(Array.from(fieldPositions(source), ([field, { line }]) => [line, field]))
  const found: FlowLine[] = []
  let field: string | undefined
  for (const [index, text] of source.split('\n').entries()) {
    field = starts.get(index + 2) ?? field
    if (FLOW_VALUE.test(text)) found.push({ line: index + 2, field })
  }
  return found
}

/** Whether the field that a finding is about has brackets, which stand in no finding of their own then. */
export function hasBrackets ({ mainFile }: Subject, { field }: Finding): boolean {
  if (mainFile === undefined || field === undefined) return false
  const location = locateFrontmatter(mainFile)
  return location.kind === 'found' && flowLines(mainFile.toString('utf8', location.start, location.end)).some((each) => each.field === field)
}
