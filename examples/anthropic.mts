/**
 * An agent's loop over Anthropic's Messages, with its SDK (`npm i @anthropic-ai/sdk`):
 *
 *   ANTHROPIC_API_KEY=… ANTHROPIC_MODEL=… npx tsx examples/anthropic.mts "What is the weather in Lyon?"
 *
 * SKILLS_URL is the skillserve server. The model of examples/fake-model.mts takes any key:
 *
 *   ANTHROPIC_API_KEY=any ANTHROPIC_BASE_URL=http://127.0.0.1:8081 npx tsx examples/anthropic.mts
 */
import type { Anthropic } from '@anthropic-ai/sdk'

const { SKILLS_URL = 'http://127.0.0.1:8080', ANTHROPIC_MODEL = 'scripted' } = process.env

const MAX_TURNS = 10

const sdk = await import('@anthropic-ai/sdk').catch((): never => {
  console.error('the SDK is not installed: npm i @anthropic-ai/sdk')
  process.exit(1)
})
const anthropic = new sdk.Anthropic()

console.log(await answer(process.argv[2] ?? 'What is the weather in Lyon?'))

async function answer (question: string): Promise<string> {
  const catalog = await (await skillserve('/agent/prompt')).text()
  const tools = await (await skillserve('/agent/tools?format=anthropic')).json() as Anthropic.Tool[]
  const system = `Before you work on a task, read the skill that fits, and the files that it names.\n${catalog}`
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }]
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const message = await anthropic.messages.create({
      model: ANTHROPIC_MODEL, max_tokens: 4096, system, tools, messages
    })
    const calls = message.content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) {
      return message.content.flatMap((block) => block.type === 'text' ? block.text : []).join('\n')
    }
    for (const call of calls) console.log(`> ${call.name} ${JSON.stringify(call.input)}`)
    const results = await (await skillserve('/agent/tool-call', message)).json() as Anthropic.ToolResultBlockParam[]
    messages.push({ role: 'assistant', content: message.content }, { role: 'user', content: results })
  }
  throw new Error(`no answer after ${MAX_TURNS} turns`)
}

/** GET, or POST when there is a body. */
async function skillserve (path: string, body?: object): Promise<Response> {
  const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(SKILLS_URL + path, init).catch((): never => {
    console.error(`is skillserve running at ${SKILLS_URL}?`)
    process.exit(1)
  })
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`)
  return response
}
