import { isHidden, nameOfHidden } from './hidden-characters.ts'

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

/** What a template takes: text, which it escapes, or markup. Nothing is written for `undefined`, `null` and `false`. */
export type Content = Html | string | number | undefined | null | false | readonly Content[]

const SYNTAX = /[&<>"']/g
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Text for elements, and for attributes in quotes. */
export function escape (text: string): string {
  return text.replaceAll(SYNTAX, (character) => ENTITIES[character] ?? '')
}

/** A template of HTML that escapes each value. Values stand between tags, or in attributes in double quotes. */
export function html (strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  let text = strings[0] ?? ''
  for (const [index, value] of values.entries()) text += write(value) + (strings[index + 1] ?? '')
  return new Html(text)
}

/** Markup of a renderer that escapes by itself. */
export function trusted (markup: string): Html {
  return new Html(markup)
}

function write (value: Content): string {
  if (value === undefined || value === null || value === false) return ''
  if (value instanceof Html) return value.toString()
  return typeof value === 'object' ? value.map(write).join('') : escape(String(value))
}

/** Text of a skill for an element: what a person would not see, and a model reads, is shown as a mark. */
export function visible (text: string): Html {
  return new Html(escapeVisibly(text))
}

/** The same as markup, of a part of a text: what is before it decides on some of its characters. */
export function escapeVisibly (text: string, from = 0, to = text.length): string {
  let marked = ''
  let start = from
  for (let i = from; i < to; i++) {
    if (!isHidden(text, i)) continue
    const codePoint = text.codePointAt(i) ?? 0
    marked += `${escape(text.slice(start, i))}<span class="hidden-character" title="${nameOfHidden(codePoint)}">${toHex(codePoint)}</span>`
    if (codePoint > 0xffff) i++
    start = i + 1
  }
  return marked + escape(text.slice(start, to))
}

function toHex (codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`
}
