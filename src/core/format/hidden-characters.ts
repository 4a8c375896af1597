import type { FindingCode } from './findings.ts'

/** Names of the text that a model reads and a person does not see, by finding code. */
export const HIDDEN_KINDS = {
  control_characters: 'control characters',
  zero_width_characters: 'zero-width characters',
  bidi_control_characters: 'characters that change the direction of text',
  hidden_tag_characters: 'invisible tag characters'
} as const satisfies Partial<Record<FindingCode, string>>

export type HiddenKind = keyof typeof HIDDEN_KINDS

/** Control characters that belong to text: tab, line feed, form feed, carriage return. */
const WHITE_SPACE: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d])

const ZERO_WIDTH_NON_JOINER = 0x200c
const ZERO_WIDTH_JOINER = 0x200d
export const BYTE_ORDER_MARK = 0xfeff

/** The tag characters repeat ASCII from here. */
export const TAGS_START = 0xe0000
export const TAGS_END = 0xe007f

/**
 * Which kind a character is of, undefined for one that a person sees. A byte order mark counts as hidden: callers know
 * whether it is the first of a file.
 *
 * @param before the code point before it, where `dependsOnBefore` says so; undefined at the start
 */
export function hiddenKindOf (codePoint: number, before: number | undefined): HiddenKind | undefined {
  if (codePoint < 0x20) return WHITE_SPACE.has(codePoint) ? undefined : 'control_characters'
  if (codePoint < 0x200b) return codePoint >= 0x7f && codePoint <= 0x9f ? 'control_characters' : undefined
  switch (codePoint) {
    case 0x200b: // zero width space
    case 0x2060: // word joiner
    case BYTE_ORDER_MARK:
      return 'zero_width_characters'
    case ZERO_WIDTH_NON_JOINER:
    case ZERO_WIDTH_JOINER:
      return joins(before) ? undefined : 'zero_width_characters'
  }
  if (codePoint >= 0x202a && codePoint <= 0x202e) return 'bidi_control_characters'
  if (codePoint >= 0x2066 && codePoint <= 0x2069) return 'bidi_control_characters'
  if (codePoint >= TAGS_START && codePoint <= TAGS_END) return 'hidden_tag_characters'
  // One selects a form of the character before it. A row of them spells bytes.
  const isInRow = isVariationSelector(codePoint) && before !== undefined && isVariationSelector(before)
  return isInRow ? 'zero_width_characters' : undefined
}

/** Whether the character before decides what this one is. */
export function dependsOnBefore (codePoint: number): boolean {
  return codePoint === ZERO_WIDTH_NON_JOINER || codePoint === ZERO_WIDTH_JOINER || isVariationSelector(codePoint)
}

function isVariationSelector (codePoint: number): boolean {
  return (codePoint >= 0xfe00 && codePoint <= 0xfe0f) || (codePoint >= 0xe0100 && codePoint <= 0xe01ef)
}

/** A joiner belongs to the spelling of some scripts and to emoji, and to nothing after ASCII or a hidden character. */
function joins (before: number | undefined): boolean {
  return before !== undefined && before >= 0x80 && hiddenKindOf(before, undefined) === undefined
}
