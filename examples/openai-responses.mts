/**
 * An agent's loop over OpenAI's Responses, with its SDK (`npm i openai`):
 *
 *   OPENAI_API_KEY=… OPENAI_MODEL=… npx tsx examples/openai-responses.mts "What is the weather in Lyon?"
 *
 * SKILLS_URL is the skillserve server. The model of examples/fake-model.mts takes any key:
 *
 *   OPENAI_API_KEY=any OPENAI_BASE_URL=http://127.0.0.1:8081/v1 npx tsx examples/openai-responses.mts
 */
import type { FunctionTool, ResponseInputItem } from 'openai/resources/responses/responses'

const { SKILLS_URL = 'http://127.0.0.1:8080', OPENAI_MODEL = 'scripted' } = process.env

const MAX_TURNS = 10

const { default: OpenAI } = await import('openai').catch((): never => {
  console.error('the SDK is not installed: npm i openai')
  process.exit(1)
})
const openai = new OpenAI()

console.log(await answer(process.argv[2] ?? 'What is the weather in Lyon?'))

async function answer (question: string): Promise<string> {
  const catalog = await (await skillserve('/agent/prompt')).text()
  const tools = await (await skillserve('/agent/tools?format=openai-responses')).json() as FunctionTool[]
  const instructions = `Before you work on a task, read the skill that fits, and the files that it names.\n${catalog}`
  const input: ResponseInputItem[] = [{ role: 'user', content: question }]
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const response = await openai.responses.create({ model: OPENAI_MODEL, instructions, tools, input })
    const calls = response.output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) return response.output_text
    for (const call of calls) console.log(`> ${call.name} ${call.arguments}`)
    const outputs =
      await (await skillserve('/agent/tool-call', response)).json() as ResponseInputItem.FunctionCallOutput[]
    input.push(...response.output as ResponseInputItem[], ...outputs)
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
