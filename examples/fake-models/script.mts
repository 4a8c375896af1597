/** What the scripted models do, whatever wire format they speak. */

/** A tool call that has its result. */
export interface Exchange {
  readonly name: string
  readonly args: Readonly<Record<string, string>>
  readonly result: string
}

/** All that a model knows: it remembers nothing between two requests. */
export interface Conversation {
  readonly question: string
  readonly tools: readonly string[]
  readonly exchanges: readonly Exchange[]
}

export interface Call {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, string>>
}

/** What the model says next: calls, or its last word. */
export type Turn = { readonly calls: readonly Call[] } | { readonly text: string }

/** One provider's wire format. */
export interface FakeModel {
  readonly path: RegExp
  /** The answer to a request. Throws BadRequest for a conversation that the provider would refuse. */
  answer (request: unknown): object
  /** What the provider sends with status 400. */
  error (message: string): object
}

export class BadRequest extends Error {}

/** A file's name as a skill writes it: `docs/api.md`, but not `0.1`. */
const NAMED_FILE = /`([\w./-]+\.[a-z]\w*)`/g

/**
 * Lists the skills, reads the one that the question names, reads the files that this one names, says what it has read.
 */
export function nextTurn ({ question, tools, exchanges }: Conversation): Turn {
  for (const name of ['list_skills', 'get_skill', 'read_file_in_skill']) {
    if (!tools.includes(name)) throw new BadRequest(`no tool ${name} was given`)
  }
  const call = (...calls: ReadonlyArray<readonly [name: string, args: Call['args']]>): Turn =>
    ({ calls: calls.map(([name, args], index) => ({ id: `call_${exchanges.length + index}`, name, args })) })

  const list = exchanges.find(({ name }) => name === 'list_skills')
  if (list === undefined) return call(['list_skills', {}])

  const document = exchanges.find(({ name }) => name === 'get_skill')
  if (document === undefined) {
    const { skills } = JSON.parse(list.result) as { readonly skills: readonly string[] }
    const skill = skills.find((name) => question.includes(name))
    if (skill === undefined) return { text: `There is no skill for this, only ${skills.join(', ')}.` }
    return call(['get_skill', { skill_name: skill }])
  }

  const skill = document.args['skill_name'] ?? ''
  const named = [...new Set(Array.from(document.result.matchAll(NAMED_FILE), ([, path = '']) => path))]
  const files = exchanges.filter(({ name }) => name === 'read_file_in_skill')
  if (files.length === 0 && named.length > 0) {
    return call(...named.map((path) => ['read_file_in_skill', { skill_name: skill, file_path: path }] as const))
  }
  const read = files.map(({ args, result }) => `, ${args['file_path']} (${result.length} characters)`)
  return { text: `I have read the skill ${skill}${read.join('')}.` }
}
