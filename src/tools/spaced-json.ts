/** JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it: a blank after each colon and comma. */
export function spacedJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => spacedJson(item)).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`)
    return `{${members.join(', ')}}`
  }
  return JSON.stringify(value)
}
