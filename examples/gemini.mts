/**
 * An agent's loop over Gemini, with its SDK (`npm i @google/genai`):
 *
 *   GEMINI_API_KEY=… GEMINI_MODEL=… npx tsx examples/gemini.mts "What is the weather in Lyon?"
 *
 * SKILLS_URL is the skillserve server. The model of examples/fake-model.mts takes any key:
 *
 *   GEMINI_API_KEY=any GEMINI_BASE_URL=http://127.0.0.1:8081 npx tsx examples/gemini.mts
 */
import type { Content, Part, Tool } from '@google/genai'

const { SKILLS_URL = 'http://127.0.0.1:8080', GEMINI_API_KEY = '', GEMINI_BASE_URL, GEMINI_MODEL = 'scripted' } =
  process.env

const MAX_TURNS = 10

const { GoogleGenAI } = await import('@google/genai').catch((): never => {
  console.error('the SDK is not installed: npm i @google/genai')
  process.exit(1)
})
const gemini =
  new GoogleGenAI({ apiKey: GEMINI_API_KEY, httpOptions: { ...GEMINI_BASE_URL && { baseUrl: GEMINI_BASE_URL } } })

console.log(await answer(process.argv[2] ?? 'What is the weather in Lyon?'))

async function answer (question: string): Promise<string> {
  const catalog = await (await skillserve('/agent/prompt')).text()
  const tools = await (await skillserve('/agent/tools?format=gemini')).json() as Tool[]
  const systemInstruction =
    `Before you work on a task, read the skill that fits, and the files that it names.\n${catalog}`
  const contents: Content[] = [{ role: 'user', parts: [{ text: question }] }]
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const response = await gemini.models.generateContent({
      model: GEMINI_MODEL, contents, config: { systemInstruction, tools }
    })
    const content = response.candidates?.[0]?.content
    if (content === undefined || response.functionCalls === undefined) return response.text ?? ''
    for (const call of response.functionCalls) console.log(`> ${call.name} ${JSON.stringify(call.args)}`)
    const parts = await (await skillserve('/agent/tool-call', response)).json() as Part[]
    contents.push(content, { role: 'user', parts })
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
