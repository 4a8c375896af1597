import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { startProcess } from '../helper/process.ts'
import { makeKeyPair, sign } from '../helper/signing.ts'
import { until } from '../helper/skills.ts'

/** Rounds of one edit without a signature and one with. More find nothing more often: `npm run attack` is for those. */
const ROUNDS = 6
/** Too large for the memory of the service: it is sent while it is read. */
const LARGE_BYTES = 300_000

/** In every file and in the description of a state that nobody has signed. */
const CANARY = 'CANARY'

function writeState (folder: string, text: string, mainFile = true): void {
  if (mainFile) fs.writeFileSync(join(folder, 'SKILL.md'), `---\nname: demo\ndescription: What ${text} is for\n---\n${text}\n`)
  fs.writeFileSync(join(folder, 'scripts/run.sh'), `echo ${text}\n`)
  fs.writeFileSync(join(folder, 'large.txt'), `${text}\n`.repeat(LARGE_BYTES / (text.length + 1)))
}

t.test('K95: while somebody edits and signs a skill, no answer of any door holds a byte of a state that is not signed', async (t) => {
  const root = t.testdir({ skills: { demo: { scripts: {} }, other: { 'SKILL.md': `---\nname: other\ndescription: never signed ${CANARY}\n---\n${CANARY}` } } })
  const base = join(root, 'skills')
  const demo = join(base, 'demo')
  const key = makeKeyPair()
  writeState(demo, 'signed-0')
  await sign(demo, key)
  fs.writeFileSync(join(root, 'acme.pem'), key.publicPem)
  fs.writeFileSync(join(root, 'trust.yaml'), 'signers: [{ name: acme, key: acme.pem }]\nroots: { skills: require }\n')
  const { url } = await startProcess(t, { args: [base, '--trust', join(root, 'trust.yaml')] })

  const events = await openEvents(url)
  const json = (body: unknown) => ({ method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: JSON.stringify(body) })
  const mcp = (method: string, params: Record<string, unknown> = {}) => ['/mcp', json({ jsonrpc: '2.0', id: 1, method, params })] as const
  const questions: ReadonlyArray<readonly [path: string, init?: RequestInit]> = [
    ['/skills'], ['/skills/demo'], ['/skills/demo/files/SKILL.md'], ['/skills/demo/files/scripts/run.sh'], ['/skills/demo/files/large.txt'],
    ['/skills/demo/files/large.txt', { headers: { range: 'bytes=280000-280100' } }], ['/skills/demo/files'], ['/skills/demo/archive.zip'],
    ['/skills/demo?revision=current'], ['/catalog'], ['/catalog/demo'], ['/catalog?q=canary'], ['/catalog?q=signed'], ['/agent/prompt'], ['/agent/tools?toolset=all'],
    ['/skills/other'], ['/catalog/other'], ['/skills/other/archive.zip'],
    ['/.well-known/agent-skills/index.json'], ['/.well-known/skills/index.json'], ['/.well-known/skills/demo/SKILL.md'],
    ['/agent/tool-call', json({ name: 'get_skill', arguments: { skill_name: 'demo' } })],
    ['/agent/tool-call', json({ name: 'read_file_in_skill', arguments: { skill_name: 'demo', file_path: 'scripts/run.sh' } })],
    ['/agent/tool-call', json({ name: 'Skill', arguments: { skill: 'demo' } })],
    mcp('tools/list'), mcp('resources/list'), mcp('prompts/list'), mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'demo' } })
  ]
  const writing = new AbortController()
  let signedAnswers = 0
  let absences = 0
  const leaks: string[] = []
  async function ask (path: string, init?: RequestInit): Promise<void> {
    let text = ''
    try {
      const response = await fetch(url + path, init)
      if (response.status === 404) absences++
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString('latin1')
    } catch {
      // A file that changes while it is sent ends the connection.
    }
    if (text.includes(CANARY)) leaks.push(`${path}: ${text.slice(Math.max(0, text.indexOf(CANARY) - 80), text.indexOf(CANARY) + 80)}`)
    if (text.includes('signed-')) signedAnswers++
  }
  async function read (offset: number): Promise<void> {
    for (let count = offset; !writing.signal.aborted; count++) {
      const [path, init] = questions[count % questions.length] ?? ['/skills']
      await ask(path, init)
    }
  }
  async function readScript () {
    const response = await fetch(`${url}/skills/demo/files/scripts/run.sh`)
    return { status: response.status, text: await response.text() }
  }
  const readers = Array.from({ length: 6 }, async (_, index) => { await read(index * 5) })
  for (let round = 1; round <= ROUNDS; round++) {
    // Every other time the main file, and with it what the index compares, stays.
    writeState(demo, `${CANARY}-${round}`, round % 2 === 0)
    await until(async () => (await readScript()).status === 404)
    // In place, over bytes that may be being sent.
    writeState(demo, `signed-${round}`)
    await sign(demo, key)
    await until(async () => (await readScript()).text === `echo signed-${round}\n`)
  }
  writing.abort()
  await Promise.all(readers)
  t.strictSame(leaks, [])
  t.ok(signedAnswers > 20, `${signedAnswers} answers of signed states`)
  t.ok(absences > 0, `${absences} answers without the skill`)
  t.notMatch(JSON.stringify(events.events), CANARY)
})
