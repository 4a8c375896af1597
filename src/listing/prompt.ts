import { yieldIfNeeded } from '../core/shared/async.ts'
import { foldWhitespace } from '../core/shared/text.ts'

/** Room for a frame and the number of skills that were left out, in UTF-16 code units. */
export const MIN_PROMPT_CHARACTERS = 128

/** A skill in a system prompt. Name and description are untrusted text. */
export interface PromptSkill {
  readonly name: string
  readonly description: string
  /** URL path of its main file, percent-encoded. */
  readonly location: string
}

interface PromptOptions<Skill> {
  readonly form: PromptForm
  /** Longest prompt in UTF-16 code units, at least MIN_PROMPT_CHARACTERS. Default: no limit. */
  readonly budget?: number | undefined
  /** Returns the location of a skill's main file, as the prompt's readers reach it. */
  readonly locate: (skill: Skill) => string
}

export type PromptForm = keyof typeof FORMS

interface Form {
  entry (skill: PromptSkill): string
  /** Joins the entries into a prompt; `omitted` is the number of skills without an entry. */
  write (entries: readonly string[], omitted: number): string
}

/** Characters that end a line, change the direction of text, or are not allowed in XML. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu
const UNPRINTABLE_IN_XML = /(?![\t\n])[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu

const XML_SYNTAX = /[&<>"']/g
const XML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#x27;'
}

/** Brackets of Markdown links, and the backslash, which would cancel the escaping of a bracket. */
const MARKDOWN_LINK = /[\\[\]]/g

/** First characters of tags and entities, which Markdown and models understand too. */
const MARKUP_START = /[&<]/g

const FORMS = {
  /** Exactly the format of skills-ref, one element per line. An additional element counts omitted skills. */
  xml: {
    entry: ({ name, description, location }) =>
      `<skill>\n${xmlElement('name', name)}\n${xmlElement('description', description)}\n` +
      `${xmlElement('location', location)}\n</skill>`,
    write: (entries, omitted) =>
      [
        '<available_skills>', ...entries, ...omitted > 0 ? [xmlElement('omitted', omission(omitted))] : [],
        '</available_skills>'
      ].join('\n')
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
 * Writes skills for a system prompt, in their order. No text of a skill can end its entry or begin another. An entry
 * that does not fit into the budget is left out, but shorter ones after it are not.
 */
export async function renderPrompt<Skill extends Omit<PromptSkill, 'location'>> (
  skills: readonly Skill[], { form, budget = Infinity, locate }: PromptOptions<Skill>
): Promise<string> {
  const { entry, write }: Form = FORMS[form]
  const entries: string[] = []
  for (const skill of skills) {
    entries.push(entry({ name: skill.name, description: skill.description, location: locate(skill) }))
    await yieldIfNeeded()
  }
  const whole = write(entries, 0)
  if (whole.length <= budget) return whole
  // Entries are separated by one character.
  let room = budget - write([''], skills.length).length + 1
  const kept = entries.filter(({ length }) => {
    if (length >= room) return false
    room -= length + 1
    return true
  })
  return write(kept, skills.length - kept.length)
}

function omission (count: number): string {
  return `${count} more, not listed here`
}

function xmlElement (tag: string, text: string): string {
  return `<${tag}>\n${xmlText(text)}\n</${tag}>`
}

function xmlText (text: string): string {
  return escaped(text.replaceAll(UNPRINTABLE_IN_XML, ' ').trim(), XML_SYNTAX)
}

function markdownText (text: string): string {
  const line = foldWhitespace(text.replaceAll(UNPRINTABLE, ' '))
  return escaped(line.replaceAll(MARKDOWN_LINK, '\\$&'), MARKUP_START)
}

function escaped (text: string, syntax: RegExp): string {
  return text.replaceAll(syntax, (character) => XML_ENTITIES[character] ?? '')
}
