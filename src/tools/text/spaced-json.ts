/**
 * JSON with the spacing of the source documents' examples: one blank after each colon
 * and comma that is not inside a string. It is that of Python's `json.dumps(…, ensure_ascii=False)`.
 *
 * @param value plain JSON data, no deeper than a call stack: a tool's own result
 */
export function spacedJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => spacedJson(item)).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`)
    return `{${members.join(', ')}}`
  }
  return JSON.stringify(value)
}
