import { shellWord } from '../operator/shell-word.ts'

/** Client, and the text that its user types or pastes to use one skill, or all. */
export interface Snippet {
  /** Stable name, for ids in HTML. */
  readonly id: string
  readonly client: string
  /** File that the text belongs into, or what the text does. */
  readonly where: string
  /** API through which the client gets the skill; it may not offer every skill. */
  readonly through: 'rest' | 'main file' | 'archive' | 'discovery' | 'mcp'
  readonly text: string
}

type Row = readonly [
  id: string, client: string, where: string, through: Snippet['through'], text: string | object
]

/**
 * Returns the snippets of all clients.
 * @param base address of the service, without a slash at the end
 * @param name name of the skill; undefined for all skills
 */
export function snippets (base: string, name?: string): readonly Snippet[] {
  const url = `${base}/mcp`
  const curl = (path: string) => `curl -s ${shellWord(base + path)}`
  const skill = name === undefined ? '' : `/skills/${encodeURIComponent(name)}`
  const ofOne: readonly Row[] = [
    ['curl', 'curl', 'reads its SKILL.md', 'main file',
      `curl -s -H 'Accept: text/markdown' ${shellWord(base + skill)}`],
    ['zip', 'ZIP archive', 'saves the whole skill', 'archive',
      `curl -s -OJ ${shellWord(`${base}${skill}/archive.zip`)}`]
  ]
  const ofAll: readonly Row[] = [['curl', 'curl', 'lists the skills', 'rest', curl('/skills')]]
  const only = name === undefined ? '' : ` --skill ${shellWord(name)}`
  const rows: readonly Row[] = [
    ...name === undefined ? ofAll : ofOne,
    ['skills', 'skills CLI', 'installs into the agents of the folder', 'discovery',
      `npx skills add ${shellWord(base)}${only}`],
    ['claude-code', 'Claude Code', 'in a terminal', 'mcp', `claude mcp add --transport http skills ${shellWord(url)}`],
    ['cursor', 'Cursor', '.cursor/mcp.json', 'mcp', { mcpServers: { skills: { url } } }],
    ['vscode', 'VS Code', '.vscode/mcp.json', 'mcp', { servers: { skills: { type: 'http', url } } }],
    ['gemini', 'Gemini CLI', '.gemini/settings.json', 'mcp', { mcpServers: { skills: { httpUrl: url } } }],
    ['opencode', 'OpenCode', 'opencode.json', 'discovery', { skills: { urls: [`${base}/.well-known/skills/`] } }],
    ['tools', 'Tool definitions', 'for the request to a model; format also anthropic, gemini, …', 'rest',
      curl('/agent/tools?format=openai')],
    ['prompt', 'Prompt', 'a list of all skills for the system prompt of a model', 'rest', curl('/agent/prompt')]
  ]
  return rows.map(([id, client, where, through, text]) =>
    ({ id, client, where, through, text: typeof text === 'string' ? text : JSON.stringify(text, undefined, 2) }))
}
