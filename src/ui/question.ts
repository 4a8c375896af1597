import { countCodePoints } from '../core/shared/text.ts'
import type { View } from '../core/view.ts'
import type { EntryFilter } from '../listing/pages.ts'
import { HttpProblem } from '../http/problem.ts'
import { MAX_QUERY_CODE_POINTS } from '../schemas/catalog.ts'
import type { EntryVerdicts } from '../verdicts/entry.ts'
import { type Outcome, parseTargets, type TargetName } from '../verdicts/targets.ts'
import type { Addresses } from './pages/layout.ts'

/** Filters of the list: skills that are valid, have warnings, or have errors. */
export const CHOICES = ['valid', 'warnings', 'errors'] as const
type Choice = typeof CHOICES[number]

/** Parameters in the address of a list. */
export interface ListQuestion {
  readonly query: string
  readonly choice: Choice | undefined
  /** Name of a root. */
  readonly root: string | undefined
  /** Target whose rules decide on `choice`. */
  readonly target: TargetName | undefined
  readonly cursor: string | undefined
}

/** Parameter of each choice in an address, such as `?valid=false`. */
export const CHOICE_PARAMETERS = {
  valid: ['valid', 'true'],
  warnings: ['severity', 'warning'],
  errors: ['valid', 'false']
} as const satisfies Record<Choice, readonly [name: string, value: string]>

/** Counts the skills that are valid by the index. */
export function countValid (skills: Pick<View, 'findIndexed'>, names: readonly string[]): number {
  return names.filter((name) => skills.findIndexed(name)?.valid === true).length
}

/**
 * Reads the parameters of a list. Ignores others, as web servers do.
 * @throws HttpProblem for a search that is too long
 */
export function readQuestion (parameters: Readonly<Record<string, unknown>>): ListQuestion {
  const word = (name: string) => {
    const value = parameters[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const query = word('q')?.toWellFormed().trim() ?? ''
  if (countCodePoints(query) > MAX_QUERY_CODE_POINTS) {
    throw new HttpProblem('bad_query', `The search has more than ${MAX_QUERY_CODE_POINTS} characters`)
  }
  const targets = parseTargets(word('target') ?? '')
  return {
    query,
    choice: CHOICES.find((choice) => word(CHOICE_PARAMETERS[choice][0]) === CHOICE_PARAMETERS[choice][1]),
    root: word('root'),
    target: 'unknown' in targets ? undefined : targets[0],
    cursor: word('cursor')
  }
}

/** Returns the address of a list, of its first page unless there is a cursor. */
export function listAddress (
  addresses: Addresses, { query, choice, root, target, cursor }: Partial<ListQuestion>
): string {
  const [name, value] = choice === undefined ? [] : CHOICE_PARAMETERS[choice]
  const parameters = new URLSearchParams()
  for (const [key, text] of Object.entries({
    q: query, ...name !== undefined && { [name]: value }, root, target, cursor
  })) {
    if (text !== undefined && text !== '') parameters.set(key, text)
  }
  return parameters.size === 0 ? addresses.home : `${addresses.home}?${parameters.toString()}`
}

/** Returns how the list is filtered: by the index, or by reading entries. */
export function filterOf (
  { choice, target }: ListQuestion
): { readonly valid?: boolean, readonly filter?: EntryFilter<EntryVerdicts> } {
  if (choice === undefined) return {}
  if (target !== undefined) {
    const accepts = ({ targets = [] }: EntryVerdicts) => targets.some(({ verdict }) => isChosen(choice, verdict))
    return { filter: { key: `${choice} ${target}`, accepts } }
  }
  if (choice !== 'warnings') return { valid: choice === 'valid' }
  return { filter: { key: choice, accepts: ({ findings }) => findings.some(({ severity }) => severity === 'warning') } }
}

function isChosen (choice: Choice, verdict: Outcome): boolean {
  const isTaken = verdict !== 'not_loaded' && verdict !== 'refused'
  return choice === 'errors' ? !isTaken : isTaken && (choice === 'valid' || verdict !== 'ok')
}
