import { createSlicer } from '../async.ts'
import { foldWhitespace } from '../text.ts'

/** A skill as a system prompt names it. Name and description are untrusted text: any characters. */
export interface PromptSkill {
  readonly name: string
  readonly description: string
  /** URL path of its main file, percent-encoded. */
  readonly location: string
}

export interface PromptOptions<Skill> {
  readonly form: PromptForm
  /**
   * Most characters (UTF-16 code units) of the whole, at least MIN_PROMPT_CHARACTERS; what says how many skills were left
   * out counts too. Default: no limit.
   */
  readonly budget?: number | undefined
  /** The location of a skill, as those who read the prompt know it. */
  readonly locate: (skill: Skill) => string
}

export type PromptForm = keyof typeof FORMS

interface Form {
  entry (skill: PromptSkill): string
  /** The whole prompt; `omitted` is how many skills have no entry in it. */
  write (entries: readonly string[], omitted: number): string
}

/** What ends a line, turns the reading order round, or is no character of XML. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu
const UNPRINTABLE_IN_XML = /(?![\t\n])[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu

/** Nearly all names and descriptions: told many times faster than by the classes above. */
const PLAIN = /^[ -~]*$/

const XML_SYNTAX = /[&<>"']/g
const XML_ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#x27;' }

/** What begins or ends a link in Markdown, and what would take the backslash away from it. */
const MARKDOWN_LINK = /[\\[\]]/g

/** What begins a tag or an entity, in Markdown too, and around it in a prompt. */
const MARKUP_START = /[&<]/g

const FORMS = {
  /** skills-ref's form, to the letter: one element per line, text on its own line. Left out: one more element. */
  xml: {
    entry: ({ name, description, location }) =>
      `<skill>\n${xmlElement('name', name)}\n${xmlElement('description', description)}\n${xmlElement('location', location)}\n</skill>`,
    write: (entries, omitted) =>
      ['<available_skills>', ...entries, ...omitted > 0 ? [xmlElement('omitted', omission(omitted))] : [], '</available_skills>'].join('\n')
  },
  json: {
    entry: ({ name, description, location }) => JSON.stringify({ name, description, location }),
    write: (entries, omitted) => `{"skills":[${entries.join(',')}],"omitted":${omitted}}`
  },
  /** A list with one line per skill. */
  markdown: {
    entry: ({ name, description, location }) => `- [${markdownText(name)}](${location}): ${markdownText(description)}`,
    write: (entries, omitted) => [...entries, ...omitted > 0 ? [`- ${omission(omitted)}`] : []].join('\n')
  }
} as const satisfies Record<string, Form>

/**
 * The skills for a system prompt, in their order. No text of a skill ends its entry or begins another one. A skill
 * whose entry does not fit any more is left out, and those after it are tried: a long one takes nobody's place but its own.
 * Works in slices.
 */
export async function renderPrompt<Skill extends Omit<PromptSkill, 'location'>> (
  skills: readonly Skill[], { form, budget = Infinity, locate }: PromptOptions<Skill>
): Promise<string> {
  const { entry, write }: Form = FORMS[form]
  const yieldIfNeeded = createSlicer()
  const all: string[] = []
  const kept: string[] = []
  // With one character between two entries: `whole` is the length of all so far, `room` what those that are kept leave over.
  let whole = write([''], 0).length - 1
  let room = budget - write([''], skills.length).length + 1
  const least = entry({ name: '', description: '', location: '' }).length
  for (const skill of skills) {
    const pause = yieldIfNeeded()
    if (pause !== undefined) await pause
    const { name, description } = skill
    if (whole > budget && least + name.length + description.length >= room) continue
    const text = entry({ name, description, location: locate(skill) })
    whole += text.length + 1
    if (whole <= budget) all.push(text)
    if (text.length >= room) continue
    room -= text.length + 1
    kept.push(text)
  }
  return whole <= budget || skills.length === 0 ? write(all, 0) : write(kept, skills.length - kept.length)
}

function omission (count: number): string {
  return `${count} more, not listed here`
}

function xmlElement (tag: string, text: string): string {
  return `<${tag}>\n${xmlText(text)}\n</${tag}>`
}

function xmlText (text: string): string {
  const printable = PLAIN.test(text) ? text : text.replaceAll(UNPRINTABLE_IN_XML, ' ')
  return printable.trim().replaceAll(XML_SYNTAX, (character) => XML_ENTITIES[character] ?? '')
}

function markdownText (text: string): string {
  const line = foldWhitespace(PLAIN.test(text) ? text : text.replaceAll(UNPRINTABLE, ' '))
  return line.replaceAll(MARKDOWN_LINK, '\\$&').replaceAll(MARKUP_START, (character) => XML_ENTITIES[character] ?? '')
}
