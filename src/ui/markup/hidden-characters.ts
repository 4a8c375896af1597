import { dependsOnBefore, hiddenKindOf, TAGS_END, TAGS_START } from '../../core/format/hidden-characters.ts'

/**
 * Characters that a model reads and a person does not see, by position. They are the same as those of the findings
 * `control_characters`, `zero_width_characters`, `bidi_control_characters` and `hidden_tag_characters`, in every file.
 */
export function isHidden (text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  if (unit >= 0x20 && unit < 0x7f) return false
  const codePoint = text.codePointAt(index) ?? 0
  return hiddenKindOf(codePoint, dependsOnBefore(codePoint) ? codePointBefore(text, index) : undefined) !== undefined
}

function codePointBefore (text: string, index: number): number | undefined {
  const pair = text.codePointAt(index - 2)
  return pair !== undefined && pair > 0xffff ? pair : text.codePointAt(index - 1)
}

/** What kind of hidden character it is, in words; for a tag also the character that it stands for. */
export function nameOfHidden (codePoint: number): string {
  if (codePoint >= TAGS_START && codePoint <= TAGS_END) {
    const ascii = codePoint - TAGS_START
    return ascii > 0x20 &&
      ascii < 0x7f
      ? `invisible tag character, number ${ascii} of ASCII`
      : 'invisible tag character'
  }
  if (codePoint < 0xa0) return 'control character'
  return hiddenKindOf(codePoint, undefined) === 'bidi_control_characters'
    ? 'changes the direction of text'
    : 'zero-width character'
}
