import { readdirSync } from 'node:fs'
import { skillEntry } from '@modelcontextprotocol/server/ext/skills'
import fc from 'fast-check'
import t from 'tap'
import { parseSkillBytes } from '../../src/core/format/main-file.ts'
import { tokenize } from '../../src/core/search/words.ts'
import { MAX_FRONTMATTER_BYTES } from '../../src/core/shared/limits.ts'
import { buildService } from '../helper/build.ts'
import { startProcess } from '../helper/process.ts'
import { askUntilServed, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { timeWithin } from '../helper/timing.ts'
import { attackInputs } from './attacks/attack-inputs.ts'
import { isAlive, mcpCall, readInputsOptions, startAttackTarget } from './attacks/attack-target.ts'
import { BOMBS, CANARY, filled, withFrontmatter, writeAttackTree, writeBombs } from './attacks/attack-tree.ts'
import { createAttacker } from './attacks/attacker.ts'
import { runChaos } from './chaos/chaos.ts'
import { World } from './chaos/world.ts'

const SEED = 20_260_728

/** Inputs for each route, by what they cost; `npm run attack` sends more, and others each night. */
const RUNS: Readonly<Record<string, number>> = { path: 300, query: 80, tool: 100, mcp: 80, json: 50, headers: 80 }

/**
 * Longest turn of the event loop that an attack may cause, and longest time for one skill, in milliseconds. The machine
 * runs other tests meanwhile.
 */
const STALL_MS = 1_000
const SKILL_MS = 200

const PROTOTYPE = Reflect.ownKeys(Object.prototype)

t.test('K48: one service answers everything as documented, and nothing secret comes out', async (t) => {
  const service = await buildService(t, { options: { prepare: writeAttackTree } })
  const attacker = await createAttacker(service.url, service.folder)
  const inputs = attackInputs(await readInputsOptions(service.url, service.folder))
  t.same(Object.keys(inputs), Object.keys(RUNS))
  for (const [route, attacks] of Object.entries(inputs)) {
    await t.test(`hostile input: ${route}`, async () => {
      await fc.assert(fc.asyncProperty(attacks, (attack) => attacker.attack(attack)),
        { seed: SEED, numRuns: RUNS[route] ?? 0 })
    })
  }
  t.comment(`${attacker.sent} inputs tried`)
  t.ok(await isAlive(service.url))
  t.same(Reflect.ownKeys(Object.prototype), PROTOTYPE, 'Object.prototype is as it was')
  t.notOk('polluted' in {})
  t.notMatch(service.logText(), CANARY)
  t.same(service.log().filter(({ level }) => Number(level) >= 50), [], 'no request was an error of the service')
})

t.test('K10: no main file takes long to parse or to search', async (t) => {
  for (const [name, text] of Object.entries(BOMBS)) {
    t.ok(await isCheap(name, text), name)
  }
  const tokens = ['&a ', '*a ', '!!js/function ', '!b ', '- ', '? ', ': ', '\n', '  ', '"', "'", '[', ']', '{', '}',
    ',', 'k', '#', ' #', '|', '>', '<<: ', '%', '\t', '\r', '\\', '0x', '1e9', '_', '.', '\u0301', '\u6f22']
  const bombs = fc.array(fc.constantFrom(...tokens), { minLength: 1, maxLength: 6 }).map((unit) =>
    filled(unit.join(''), MAX_FRONTMATTER_BYTES))
  let tried = 0
  await fc.assert(fc.asyncProperty(bombs, async (yaml) => {
    tried++
    return await isCheap('bomb', withFrontmatter(yaml))
  }), { seed: SEED, numRuns: 60 })
  t.comment(`${tried} inputs tried`)
  t.notOk('polluted' in {})
})

t.test('K9: a real process stays up, and in turn, under all of it', async (t) => {
  const target = await startAttackTarget(t, { prepare: writeBombs })
  const attacker = await createAttacker(target.url, target.folder)
  const { json, tool, headers } = attackInputs(await readInputsOptions(target.url, target.folder))
  // What is loaded at the first request is no attack.
  t.ok(await isAlive(target.url))
  await target.longestTurn()

  await t.test('JSON bombs', async (t) => {
    await fc.assert(fc.asyncProperty(fc.oneof(json ?? fc.constantFrom(), tool ?? fc.constantFrom(),
      headers ?? fc.constantFrom()), (attack) => attacker.attack(attack)), {
      seed: SEED, numRuns: 60
    })
    const longest = await target.longestTurn()
    t.ok(longest < STALL_MS, `${longest} ms`)
  })

  await t.test('K9: YAML bombs, through every route that reads all skills', async (t) => {
    const names = readdirSync(target.root)
    for (const route of ['/skills', '/catalog?limit=500', '/catalog?q=bomb', '/agent/prompt',
      '/agent/tools?toolset=all', '/.well-known/skills/index.json', '/.well-known/agent-skills/index.json']) {
      const { status, text } = await askUntilServed(target.url, request('GET', route))
      t.equal(status, 200, route)
      t.notMatch(text, CANARY)
    }
    const listed = await askUntilServed(target.url, mcpCall('skills/list', {}))
    t.match(listed.text, /"result":\{"skills":\[/)
    for (const name of Object.keys(BOMBS)) {
      t.ok(names.includes(name))
      const expected = name === 'bomb-large' ? 413 : 200
      t.equal((await rawRequest(target.url, request('GET', `/skills/${name}`))).status, expected, name)
      t.equal((await rawRequest(target.url, request('GET', `/catalog/${name}`))).status, 200, name)
    }
    const longest = await target.longestTurn()
    t.ok(longest < STALL_MS, `${longest} ms`)
  })

  await t.test('connections that break off in the middle', async (t) => {
    for (const bytes of ['GET /ski', 'POST /mcp HTTP/1.1\r\nHost: ' +
      'localhost\r\nContent-Length: 9\r\n\r\n{', 'GET /skills/demo/files/big.bin HTTP/1.1\r\nHost: ' +
        'localhost\r\n\r\n', 'GET /events HTTP/1.1\r\nHost: ' +
          'localhost\r\n\r\n', '\0\x16\x03\x01', 'PRI * HTTP/2.0\r\n\r\n']) {
      for (let i = 0; i < 20; i++) {
        const connection = await openRaw(target.url)
        connection.send(bytes)
        connection.socket.resetAndDestroy()
      }
    }
    t.ok(await isAlive(target.url))
  })

  t.comment(`${attacker.sent} inputs tried`)
  t.ok(await isAlive(target.url))
  t.ok(
    target.log().every(({ pid, level, msg }) => msg === 'longest turn' || (pid === target.pid && Number(level) < 50)),
    'the same process, without an error')
  const { code, stdout, stderr } = await target.stop()
  t.match({ code, stderr }, { code: 0, stderr: '' })
  t.notMatch(stdout, /unhandled/i)
  t.notMatch(stdout, CANARY)
})

async function isCheap (name: string, text: string): Promise<boolean> {
  const bytes = Buffer.from(text)
  const { took, allowed } = await timeWithin(SKILL_MS, async () => {
    const { findings } = parseSkillBytes(bytes, name)
    tokenize(text)
    if (findings.every(({ severity }) => severity !== 'error')) {
      await skillEntry(name, { 'SKILL.md': bytes }).catch(() => {})
    }
  })
  return took < allowed
}

// The long form is `npm run chaos`: any seed, for as long as you like.

const OPERATIONS = 50
const BOUND = process.getuid?.() !== 0

for (const [watcher, seed] of [['events', 1], ['polling', 2]] as const) {
  t.test(`K51 K52 K53: every answer while the folders change at random is right for one moment (seed ${seed}, ${watcher})`, async (t) => {
    const world = new World(t.testdir({}), seed)
    const service = await startProcess(t, {
      args: world.args,
      env: { WATCH_POLLING: String(watcher === 'polling') }
    })
    const { operations, answers, violations } =
      await runChaos({ world, url: service.url, seed, operations: OPERATIONS, bound: BOUND })
    t.strictSame(violations, [])
    t.ok(operations >= OPERATIONS)
    t.equal(answers.size, 11, 'every kind of question was asked')
    t.match(await service.stop(), { code: 0, stderr: '' })
  })
}
