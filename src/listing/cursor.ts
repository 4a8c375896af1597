import { sha256 } from '../core/shared/digest.ts'
import { compareCodePoints } from '../core/shared/text.ts'

/** Writes the end of a page, by name and place in the list, as opaque text that is valid for one question. */
export function formatCursor (question: string, after: string, index: number): string {
  return Buffer.from(JSON.stringify([sha256(question), after, index])).toString('base64url')
}

/**
 * Returns where a page begins in a list of names; undefined for a cursor that is damaged or of another question. After
 * a skill that is gone, the page begins where it would be by name, or was if the list is not sorted.
 */
export function pageStart (
  question: string, names: readonly string[], cursor: string | undefined, isSorted = true
): number | undefined {
  if (cursor === undefined) return 0
  const [after, index] = parseCursor(question, cursor) ?? []
  if (after === undefined || index === undefined) return undefined
  const known = names.indexOf(after)
  if (known !== -1) return known + 1
  if (!isSorted) return Math.min(Math.max(index, 0), names.length)
  const next = names.findIndex((name) => compareCodePoints(name, after) > 0)
  return next === -1 ? names.length : next
}

function parseCursor (question: string, cursor: string): [after: string, index: number] | undefined {
  try {
    const [id, after, index] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    if (id !== sha256(question) || typeof after !== 'string' || !Number.isInteger(index)) return undefined
    return [after, Number(index)]
  } catch {
    return undefined
  }
}
