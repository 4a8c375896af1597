/** Stands for methods that are the caller's text. */
export const OTHER = '_OTHER'

/** The MCP request whose answer is a stream. */
export const LISTEN = 'subscriptions/listen'

/** The methods of MCP. */
const OPERATIONS: ReadonlySet<string> = new Set([
  'initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'prompts/list', 'prompts/get', 'resources/list', 'resources/templates/list', 'resources/read',
  'resources/subscribe', 'resources/unsubscribe', 'resources/directory/read', 'skills/list', 'skills/get', LISTEN, 'completion/complete', 'logging/setLevel'
])

/** What an MCP request is called in metrics and spans: there are as many names as methods, whatever callers send. */
export function operationName (method: string): string {
  return OPERATIONS.has(method) ? method : OTHER
}
