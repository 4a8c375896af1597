import { hiddenKindAt } from '../../core/format/hidden-text.ts'
import { countCodePoints, grouped } from '../../core/shared/text.ts'

/** Markup that is safe to send. Only this module makes it: from templates, which escape, and from `trusted`. */
export class Html {
  readonly #text: string

  constructor (text: string) {
    this.#text = text
  }

  toString (): string {
    return this.#text
  }
}

/** Value in a template: text, which is escaped, or markup. `undefined`, `null` and `false` write nothing. */
export type Content = Html | string | number | undefined | null | false | readonly Content[]

const SYNTAX = /[&<>"']/

/** First code point of the tag characters, which repeat ASCII. */
const TAGS_START = 0xe0000

/** Most hidden characters of one mark that are named. */
const MAX_NAMED = 8

/** Escapes text for elements, and for attributes in quotes. */
export function escape (text: string): string {
  if (!SYNTAX.test(text)) return text
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;').replaceAll("'", '&#39;')
}

/** Creates HTML, and escapes each value. Values must be between tags, or in attributes in double quotes. */
export function html (strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  let text = strings[0] ?? ''
  for (const [index, value] of values.entries()) text += write(value) + (strings[index + 1] ?? '')
  return new Html(text)
}

/** Accepts markup of a renderer that escapes by itself. */
export function trusted (markup: string): Html {
  return new Html(markup)
}

function write (value: Content): string {
  if (value === undefined || value === null || value === false) return ''
  if (value instanceof Html) return value.toString()
  return typeof value === 'object' ? value.map(write).join('') : escape(String(value))
}

/** Escapes text of a skill for an element. Characters that a model reads and a person would not see become marks. */
export function visible (text: string): Html {
  return new Html(escapeVisibly(text))
}

/** Escapes a part of a text. Hidden characters in a row become one mark, so that no page consists of marks. */
export function escapeVisibly (text: string, from = 0, to = text.length): string {
  let marked = ''
  let start = from
  for (let i = from; i < to; i++) {
    if (!isHidden(text, i)) continue
    const end = endOfHidden(text, i, to)
    marked += escape(text.slice(start, i)) + markOf(text.slice(i, end))
    start = end
    i = end - 1
  }
  return marked + escape(text.slice(start, to))
}

function endOfHidden (text: string, start: number, to: number): number {
  let end = start
  while (end < to && isHidden(text, end)) end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return end
}

/** Creates one mark, and names only its first characters, since a whole file may be one mark. */
function markOf (hidden: string): string {
  const named = Array.from(hidden.slice(0, 2 * MAX_NAMED), (character) => character.codePointAt(0) ?? 0)
    .slice(0, MAX_NAMED)
  const kinds = [...new Set(named.map(nameOfHidden))].join(', ')
  const left = countCodePoints(hidden) - named.length
  const more = left > 0 ? ` and ${grouped(left)} more` : ''
  return `<span class="hidden-character" title="${kinds}">${named.map(toHex).join(' ')}${more}</span>`
}

function toHex (codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Whether a model reads a character that a person does not see. These are the characters of the findings
 * `control_characters`, `zero_width_characters`, `bidi_control_characters` and `hidden_tag_characters`, in every file.
 */
export function isHidden (text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  return (unit < 0x20 || unit >= 0x7f) && hiddenKindAt(text, index) !== undefined
}

/** Describes the kind of a hidden character; for a tag also the character that it stands for. */
function nameOfHidden (codePoint: number): string {
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
