import { shellWord } from '../core/shared/text.ts'
import type { GithubState } from '../sources/git/github.ts'

/** A client, and what its user types or pastes to use a skill, or all of them. */
export interface Snippet {
  /** Stable, for ids. */
  readonly id: string
  readonly client: string
  /** Which file the text belongs into, or what it does. */
  readonly where: string
  readonly language: 'sh' | 'json'
  readonly text: string
  /** How the client comes to the skill, which may leave it out. */
  readonly through: 'rest' | 'main file' | 'archive' | 'discovery' | 'mcp'
}

const MCP = { language: 'json', through: 'mcp' } as const

/**
 * How each client comes to a skill.
 * @param base address of the service, without a slash at the end
 * @param name of the skill; undefined for all skills
 */
export function snippets (base: string, name?: string): readonly Snippet[] {
  const url = `${base}/mcp`
  const addToClaude = `claude mcp add --transport http skills ${shellWord(url)}`
  return [
    ...curl(base, name),
    {
      id: 'skills',
      client: 'skills CLI',
      where: 'installs into the agents of the folder',
      language: 'sh',
      through: 'discovery',
      text: `npx skills add ${shellWord(base)}${name === undefined ? '' : ` --skill ${shellWord(name)}`}`
    },
    { ...MCP, id: 'claude-code', client: 'Claude Code', where: 'in a terminal', language: 'sh', text: addToClaude },
    {
      ...MCP, id: 'cursor', client: 'Cursor', where: '.cursor/mcp.json', text: json({ mcpServers: { skills: { url } } })
    },
    {
      ...MCP,
      id: 'vscode',
      client: 'VS Code',
      where: '.vscode/mcp.json',
      text: json({ servers: { skills: { type: 'http', url } } })
    },
    {
      ...MCP,
      id: 'gemini',
      client: 'Gemini CLI',
      where: '.gemini/settings.json',
      text: json({ mcpServers: { skills: { httpUrl: url } } })
    },
    {
      id: 'opencode',
      client: 'OpenCode',
      where: 'opencode.json',
      language: 'json',
      through: 'discovery',
      text: json({ skills: { urls: [`${base}/.well-known/skills/`] } })
    },
    {
      id: 'tools',
      client: 'Tool definitions',
      where: 'for the request to a model; format also anthropic, gemini, …',
      language: 'sh',
      through: 'rest',
      text: `curl -s ${shellWord(`${base}/agent/tools?format=openai`)}`
    },
    {
      id: 'prompt',
      client: 'Prompt',
      where: 'a list of all skills for the system prompt of a model',
      language: 'sh',
      through: 'rest',
      text: `curl -s ${shellWord(`${base}/agent/prompt`)}`
    }
  ]
}

/** For a skill from GitHub, whose command line installs it from there, in the revision that is served here. */
export function githubSnippets (name: string, state: GithubState | undefined): readonly Snippet[] {
  if (state === undefined) return []
  const { repository, commit, prefix } = state
  const skill = name.startsWith(prefix) ? name.slice(prefix.length) : name
  return [{
    id: 'gh',
    client: 'GitHub CLI',
    where: 'installs it from its source, in the revision that is served here',
    language: 'sh',
    through: 'rest',
    text: `gh skill install ${repository} ${shellWord(`${skill}@${commit}`)}`
  }]
}

function curl (base: string, name: string | undefined): readonly Snippet[] {
  const all = { id: 'curl', client: 'curl', language: 'sh', through: 'rest' } as const
  if (name === undefined) return [{ ...all, where: 'lists the skills', text: `curl -s ${shellWord(`${base}/skills`)}` }]
  const skill = `${base}/skills/${encodeURIComponent(name)}`
  return [
    {
      ...all,
      through: 'main file',
      where: 'reads its SKILL.md',
      text: 'curl -s -H \'Accept: text/markdown\' ' +
        `${shellWord(skill)}`
    },
    {
      ...all,
      id: 'zip',
      client: 'ZIP archive',
      through: 'archive',
      where: 'saves the whole skill',
      text: `curl -s -OJ ${shellWord(`${skill}/archive.zip`)}`
    }
  ]
}

function json (value: object): string {
  return JSON.stringify(value, undefined, 2)
}
