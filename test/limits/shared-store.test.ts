import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Buckets } from '../../src/limits/buckets.ts'
import { connectRedis, SharedStore } from '../../src/limits/shared-store.ts'
import { freePort, hasProgram } from '../helper/proxies.ts'

/** Both speak the same protocol. */
const SERVERS = ['redis-server', 'valkey-server']

const SILENT = { info () {}, warn () {} }

async function startRedis (t: Test, program: string, port: number): Promise<ChildProcess> {
  const redis = spawn(program, ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => { redis.kill('SIGKILL') })
  for await (const chunk of redis.stdout) if (String(chunk).includes('Ready to accept connections')) break
  return redis
}

/** A replica of its own connection, with 100 units at once and so few a minute that none comes back in a test. */
async function startReplica (t: Test, port: number) {
  const lines: string[] = []
  const buckets = new Buckets({ rate: 0.01, burst: () => 100 })
  const log = { info: (_fields: object, line: string) => { lines.push(line) }, warn: (_fields: object, line: string) => { lines.push(line) } }
  const store = new SharedStore({ redis: await connectRedis(`redis://127.0.0.1:${port}`), buckets: { principal: buckets }, rate: 0.01, log })
  t.teardown(() => { store.close() })
  return {
    store,
    lines,
    take: (units: number, caller = 'ci') => buckets.take(buckets.of(caller), units) === 0,
    /** Exchanges until another exchange has failed. */
    failed: async () => {
      const before = store.failures
      while (store.failures === before) {
        buckets.charge(buckets.of('probe'), 0.001)
        await store.exchange()
        await nextTurn()
      }
    },
    /** Exchanges until the store has answered after this call. */
    settled: async () => {
      const before = store.exchanges
      while (store.exchanges === before) {
        buckets.charge(buckets.of('probe'), 0.001)
        await store.exchange()
        await nextTurn()
      }
    }
  }
}

for (const program of SERVERS) {
  const skip = !hasProgram(program, '--version') && `${program} is not installed`
  t.test(`K67: replicas share one limit through ${program}, and a store that is stopped or hangs costs nothing but accuracy`, { skip }, (t) => shareThrough(t, program))
}

async function shareThrough (t: Test, program: string): Promise<void> {
  const port = await freePort()
  let redis = await startRedis(t, program, port)
  const [one, two] = [await startReplica(t, port), await startReplica(t, port)]
  await one.settled()
  await two.settled()

  t.ok(one.take(60))
  await one.settled()
  t.ok(two.take(1))
  await two.settled()
  t.notOk(two.take(50), '61 of 100 are used')
  t.ok(two.take(30))
  await two.settled()
  t.ok(one.take(1))
  await one.settled()
  t.notOk(one.take(20))

  // As after a failover to a machine whose clock is behind.
  const [direct, key] = [await connectRedis(`redis://127.0.0.1:${port}`), 'skillserve:limit:principal:skewed']
  t.teardown(() => { direct.disconnect() })
  t.ok(one.take(1, 'skewed'))
  await one.settled()
  while (await direct.eval('return redis.call("SET", KEYS[1], redis.call("TIME")[1] * 1000 + 86400000)', 1, key).catch(() => undefined) === undefined) await nextTurn()
  t.notOk(one.take(100, 'skewed'))
  t.ok(one.take(1, 'skewed'))
  await one.settled()
  const owed = Number(await direct.eval('return redis.call("PTTL", KEYS[1])', 1, key))
  t.ok(owed > 0 && owed <= 20_000_001, `twice what a bucket holds comes back in 20,000 s, and is forgotten after ${owed} ms`)

  // Hung: the process is there, and answers nothing.
  redis.kill('SIGSTOP')
  const failed = one.store.failures
  const lines = one.lines.length
  t.ok(one.take(1))
  const exchanging = one.store.exchange()
  for (let i = 0; i < 1_000; i++) one.take(1)
  t.equal(one.store.failures, failed, 'requests are decided on at once')
  await exchanging
  if (one.store.failures === failed) await one.failed()
  t.match(one.lines.slice(lines), ['the store of limits does not answer; this replica counts for itself'])
  for (let i = 0; i < 4; i++) {
    t.ok(one.take(25, 'late'))
    await one.failed()
  }
  redis.kill('SIGCONT')
  await one.settled()
  t.ok(one.lines.at(-1)?.includes('answers again'))
  t.ok(two.take(1, 'late'))
  await two.settled()
  t.ok(two.take(50, 'late'), 'what was used while the store hung is not counted at once when it answers again')

  // Gone, with all that it knew, and back.
  redis.kill('SIGKILL')
  await once(redis, 'exit')
  t.notOk(one.take(20), 'a replica remembers what it has counted')
  redis = await startRedis(t, program, port)
  await one.settled()
  t.notOk(one.take(20))
  redis.kill('SIGKILL')
}

t.test('K67: a store that was never there delays no start and no request', async (t) => {
  const replica = await startReplica(t, await freePort())
  t.ok(replica.take(100))
  t.notOk(replica.take(1))
  while (replica.store.failures === 0) {
    replica.take(0)
    await replica.store.exchange()
    await nextTurn()
  }
  t.equal(replica.lines.length, 1)
})

t.test('K67: while a store is away, nothing is kept for its return, whichever kinds of callers there are', async (t) => {
  let isDown = true
  const sent: unknown[][] = []
  const redis = {
    async eval (_script: string, keyCount: number, ...args: unknown[]) {
      if (isDown) throw new Error('down')
      sent.push(args.slice(0, keyCount + 1))
      return Array<number>(keyCount).fill(0)
    },
    disconnect () {}
  }
  const [principal, network] = [new Buckets({ rate: 1, burst: () => 1_000 }), new Buckets({ rate: 1, burst: () => 1_000 })]
  const lines: string[] = []
  const write = (_fields: object, line: string) => { lines.push(line) }
  const store = new SharedStore({ redis, buckets: { principal, network }, rate: 1, log: { info: write, warn: write } })
  t.teardown(() => { store.close() })
  const use = async () => {
    principal.take(principal.of('ci'), 5)
    network.take(network.of('192.0.2.1'), 5)
    await store.exchange()
  }
  for (let i = 0; i < 100; i++) await use()
  t.equal(store.failures, 100)
  isDown = false
  for (let i = 0; i < 2; i++) await use()
  t.strictSame(sent, [1, 2].flatMap(() => [['skillserve:limit:principal:ci', 5_000], ['skillserve:limit:network:192.0.2.1', 5_000]]))
  t.strictSame(lines, ['the store of limits does not answer; this replica counts for itself', 'the store of limits answers again'])
})

t.test('K67: a store that answers nonsense refuses nobody for ever', async (t) => {
  for (const answer of [[], [null], ['x'], [{}], [-5], 'OK', null]) {
    const buckets = new Buckets({ rate: 1_000, burst: () => 10 })
    const store = new SharedStore({ redis: { async eval () { return answer }, disconnect () {} }, buckets: { network: buckets }, rate: 1_000, log: SILENT })
    buckets.take(buckets.of('192.0.2.1'), 1)
    await store.exchange()
    store.close()
    const wait = buckets.wait(buckets.of('192.0.2.1'), 1)
    t.ok(wait <= 20, `${JSON.stringify(answer)}: ${wait} ms`)
  }
})

t.test('K67: what the log has of a store that refuses names no caller and no password', async (t) => {
  const lines: string[] = []
  const buckets = new Buckets({ rate: 1, burst: () => 10 })
  // As ioredis has it: with the command, of which AUTH is one.
  const refused = Object.assign(new Error('NOAUTH Authentication required.'), { command: { name: 'eval', args: ['skillserve:limit:network:CANARY'] } })
  const redis = { async eval () { throw refused }, disconnect () {} }
  const store = new SharedStore({ redis, buckets: { network: buckets }, rate: 1, log: pino({}, { write: (line: string) => { lines.push(line) } }) })
  t.teardown(() => { store.close() })
  buckets.take(buckets.of('CANARY'), 1)
  await store.exchange()
  t.match(lines, [/"reason":"NOAUTH Authentication required\."/])
  t.notMatch(lines.join(), 'CANARY')
})

t.test('K67: callers go to the store in commands of a bounded size', async (t) => {
  const sizes: number[] = []
  const buckets = new Buckets({ rate: 1, burst: () => 10 })
  const redis = {
    async eval (_script: string, keyCount: number) {
      sizes.push(keyCount)
      return Array<number>(keyCount).fill(0)
    },
    disconnect () {}
  }
  const store = new SharedStore({ redis, buckets: { network: buckets }, rate: 1, log: SILENT })
  t.teardown(() => { store.close() })
  for (let i = 0; i < 1_200; i++) buckets.take(buckets.of(`a${i}`), 1)
  await store.exchange()
  t.strictSame(sizes, [500, 500, 200])
})
