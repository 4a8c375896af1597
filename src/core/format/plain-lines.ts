/** One `key: value` whose value is plain text by every rule of YAML: begins with a letter, printable ASCII, one line. */
const PLAIN_LINE = /^([A-Za-z_][\w-]*): +([A-Za-z][\x20-\x7e]*)$/

/** What ends a plain value, or makes it another type: `: `, ` #`, a colon at the end, the words of the core schema. */
const NOT_PLAIN = /: | #|:$/
const CORE_WORD = /^(?:true|false|null)$/i

/**
 * Frontmatter that is nothing but lines of plain text, as two of three real ones are, read without a YAML parser, which
 * is most of what a skill costs the first index. Undefined for everything else: then YAML decides. What is
 * returned here is what it would have said.
 */
export function readPlainLines (source: string): Record<string, string> | undefined {
  const values: Record<string, string> = {}
  const lines = source.endsWith('\n') ? source.slice(0, -1) : source
  for (const line of lines.split('\n')) {
    const [, key = '', text = ''] = PLAIN_LINE.exec(line) ?? []
    const value = text.trimEnd()
    if (key === '' || NOT_PLAIN.test(value) || CORE_WORD.test(value) || CORE_WORD.test(key)) return undefined
    if (Object.hasOwn(values, key) || key === '__proto__') return undefined
    values[key] = value
  }
  return values
}
