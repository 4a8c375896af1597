import { LISTEN, type ReadEvent } from '../http/observer.ts'

/** Stands for methods that are the caller's text. */
export const OTHER = '_OTHER'

/** The methods of MCP, and what each reads of skills. Calls of tools report their reads by themselves. */
const OPERATIONS = new Map<string, ReadEvent | 'nothing'>([
  ['initialize', 'nothing'],
  ['ping', 'nothing'],
  ['server/discover', 'nothing'],
  ['tools/list', 'nothing'],
  ['tools/call', 'nothing'],
  ['prompts/list', 'skill.list'],
  ['prompts/get', 'skill.read'],
  ['resources/list', 'skill.list'],
  ['resources/templates/list', 'nothing'],
  ['resources/read', 'skill.file_read'],
  ['resources/subscribe', 'nothing'],
  ['resources/unsubscribe', 'nothing'],
  ['resources/directory/read', 'skill.manifest'],
  ['skills/list', 'skill.list'],
  ['skills/get', 'skill.entry'],
  [LISTEN, 'events.open'],
  ['completion/complete', 'nothing'],
  ['logging/setLevel', 'nothing']
])

/** What an MCP request is called in metrics and spans: there are as many names as methods, whatever callers send. */
export function operationName (method: string): string {
  return OPERATIONS.has(method) ? method : OTHER
}

/** What an MCP request reads of skills; undefined for nothing, and for a method that there is not. */
export function eventOfOperation (method: string): ReadEvent | undefined {
  const event = OPERATIONS.get(method)
  return event === 'nothing' ? undefined : event
}
