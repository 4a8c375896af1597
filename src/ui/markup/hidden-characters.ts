/**
 * Characters that a model reads and a person does not see, by position. They are the same as those of the findings
 * `control_characters`, `zero_width_characters`, `bidi_control_characters` and `hidden_tag_characters`, in every file.
 */
export function isHidden (text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  if (unit < 0x20) return unit !== 0x09 && unit !== 0x0a && unit !== 0x0c && unit !== 0x0d
  if (unit < 0x7f) return false
  if (unit <= 0x9f) return true
  switch (unit) {
    case 0x200b: // zero width space
    case 0x2060: // word joiner
      return true
    case 0xfeff: // at the start of a file it is the byte order mark
      return index > 0
    case 0x200c: // the joiners belong to the spelling of some scripts and to emoji: they hide only after ASCII
    case 0x200d:
      return index > 0 && text.charCodeAt(index - 1) < 0x7f
    case 0xdb40: // the high half of tag characters
      return (text.charCodeAt(index + 1) & 0xff80) === 0xdc00
  }
  return isDirection(unit)
}

/** Overrides, embeddings and isolates. */
function isDirection (codePoint: number): boolean {
  return (codePoint >= 0x202a && codePoint <= 0x202e) || (codePoint >= 0x2066 && codePoint <= 0x2069)
}

const TAGS_START = 0xe0000

/** What kind of hidden character it is, in words; for a tag also the character that it stands for. */
export function nameOfHidden (codePoint: number): string {
  if (codePoint >= TAGS_START) {
    const ascii = codePoint - TAGS_START
    return ascii > 0x20 && ascii < 0x7f ? `invisible tag character, number ${ascii} of ASCII` : 'invisible tag character'
  }
  if (codePoint < 0xa0) return 'control character'
  return isDirection(codePoint) ? 'changes the direction of text' : 'zero-width character'
}
