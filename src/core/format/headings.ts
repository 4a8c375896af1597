import { MAX_SEARCHED_CHARACTERS } from '../shared/limits.ts'

/** A heading that begins with `#`, or a fence of a code block. */
const HEADING_OR_FENCE = /^ {0,3}(?:#{1,6}[ \t]+(.+)|(`{3,}|~{3,})(.*))$/gm

/** The headings of a body in Markdown, for search: the first MAX_SEARCHED_CHARACTERS of them. Code blocks have none. */
export function headingsOf (body: string): readonly string[] {
  const headings: string[] = []
  let fence: string | undefined
  let characters = 0
  for (const [, heading, mark, info = ''] of body.matchAll(HEADING_OR_FENCE)) {
    if (mark !== undefined) {
      if (fence === undefined) fence = mark
      else if (mark.startsWith(fence) && info.trim() === '') fence = undefined
    } else if (heading !== undefined && fence === undefined) {
      const text = heading.trim().replace(/[ \t]#+$/, '').trimEnd()
      characters += text.length
      if (characters > MAX_SEARCHED_CHARACTERS) break
      // V8 keeps a whole text alive for a slice of it.
      headings.push(Buffer.from(text).toString())
    }
  }
  return headings
}
