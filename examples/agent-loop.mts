/**
 * An agent's loop that uses skills: complete, and nothing but `fetch`.
 *
 *   npx tsx examples/agent-loop.mts "What is the weather in Lyon?"
 *
 * SKILLS_URL is the skillserve server. The model is any service that speaks OpenAI's Chat Completions: OPENAI_BASE_URL,
 * OPENAI_API_KEY and OPENAI_MODEL name it. Without them it is the scripted one of examples/fake-model.mts.
 */
const {
  SKILLS_URL = 'http://127.0.0.1:8080',
  OPENAI_BASE_URL = 'http://127.0.0.1:8081/v1',
  OPENAI_API_KEY = '',
  OPENAI_MODEL = 'scripted'
} = process.env

const INSTRUCTIONS = 'Skills are folders of instructions. Before you work on a task, list or search the skills, and ' +
  'read the one that fits. Follow it, and read the files that it names when you need them.'

const MAX_TURNS = 10

interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string, readonly arguments: string }
}

interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string | null
  readonly tool_calls?: readonly ToolCall[]
  readonly tool_call_id?: string
}

console.log(await answer(process.argv[2] ?? 'What is the weather in Lyon?'))

async function answer (question: string): Promise<string> {
  const tools = await getJson(`${SKILLS_URL}/agent/tools?toolset=explore`)
  const messages: Message[] = [{ role: 'system', content: INSTRUCTIONS }, { role: 'user', content: question }]
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const message = await complete(messages, tools)
    messages.push(message)
    const calls = message.tool_calls ?? []
    if (calls.length === 0) return message.content ?? ''
    for (const call of calls) console.log(`> ${call.function.name} ${call.function.arguments}`)
    messages.push(...await postJson(`${SKILLS_URL}/agent/tool-call`, { tool_calls: calls }) as Message[])
  }
  throw new Error(`no answer after ${MAX_TURNS} turns`)
}

async function complete (messages: readonly Message[], tools: unknown): Promise<Message> {
  const body = { model: OPENAI_MODEL, messages, tools }
  const completion = await postJson(`${OPENAI_BASE_URL}/chat/completions`, body,
    { authorization: `Bearer ${OPENAI_API_KEY}` })
  const [choice] = (completion as { readonly choices: ReadonlyArray<{ readonly message: Message }> }).choices
  if (choice === undefined) throw new Error('the model gave no answer')
  return choice.message
}

async function getJson (url: string): Promise<unknown> {
  return await readJson(await fetch(url).catch(() => unreachable(url)))
}

async function postJson (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  return await readJson(await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body)
  }).catch(() => unreachable(url)))
}

function unreachable (url: string): never {
  const isModel = url.startsWith(OPENAI_BASE_URL)
  console.error(isModel ? `is the model running at ${OPENAI_BASE_URL}?` : `is skillserve running at ${SKILLS_URL}?`)
  process.exit(1)
}

async function readJson (response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`)
  return await response.json()
}
