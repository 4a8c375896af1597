/**
 * Whether a name fits a text in which `*` stands for any characters. Names come from sources, and a regular expression
 * would let one of them take minutes.
 */
export function patternOf (text: string): (name: string) => boolean {
  const [first = '', ...inner] = text.split('*')
  const last = inner.pop()
  if (last === undefined) return (name) => name === text
  return (name) => {
    let end = first.length
    for (const part of inner) {
      const start = name.indexOf(part, end)
      if (start === -1) return false
      end = start + part.length
    }
    return name.startsWith(first) && name.endsWith(last) && end + last.length <= name.length
  }
}
