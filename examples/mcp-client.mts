/**
 * Lists the skills of a service through MCP, and reads one of them whole. Each file is held against the digest
 * in its entry.
 *
 *   npx tsx examples/mcp-client.mts [SKILL]
 *
 * SKILLS_URL is the skillserve server.
 */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills'

const { SKILLS_URL = 'http://127.0.0.1:8080' } = process.env
const [wanted = 'calculator'] = process.argv.slice(2)

// `auto` takes the newest revision that both sides speak.
const client = new Client({ name: 'example', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
await client.connect(new StreamableHTTPClientTransport(new URL(`${SKILLS_URL}/mcp`))).catch((error: Error): never => {
  console.error(`is skillserve running at ${SKILLS_URL}? (${error.message})`)
  process.exit(1)
})

const reader = new SkillsClient(client)
const { skills } = await reader.list()
for (const { frontmatter } of skills) console.log(`${frontmatter.name}: ${frontmatter.description}`)

const skill = skills.find(({ frontmatter }) => frontmatter.name === wanted)
if (skill === undefined || skill.resources === 'dynamic') {
  console.error(`there is no skill ${wanted}`)
  process.exit(1)
}
for (const { uri } of skill.resources) {
  const { mimeType, bytes } = await reader.read(skill, uri)
  console.log(`${uri} (${mimeType}, ${bytes.length} bytes)`)
}
await client.close()
