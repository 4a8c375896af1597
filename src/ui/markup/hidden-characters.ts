import { hiddenKindAt } from '../../core/format/hidden-text.ts'

/** The tag characters repeat ASCII from here. */
const TAGS_START = 0xe0000

/**
 * Whether a model reads a character and a person does not see it: as the findings `control_characters`,
 * `zero_width_characters`, `bidi_control_characters` and `hidden_tag_characters`, in every file.
 */
export function isHidden (text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  return (unit < 0x20 || unit >= 0x7f) && hiddenKindAt(text, index) !== undefined
}

/** What kind of hidden character it is, in words; for a tag also the character that it stands for. */
export function nameOfHidden (codePoint: number): string {
  switch (hiddenKindAt(String.fromCodePoint(codePoint), 0)) {
    case 'control_characters': return 'control character'
    case 'bidi_control_characters': return 'changes the direction of text'
    case 'hidden_tag_characters': {
      const ascii = codePoint - TAGS_START
      return `invisible tag character${ascii > 0x20 && ascii < 0x7f ? `, number ${ascii} of ASCII` : ''}`
    }
    default: return 'zero-width character'
  }
}
