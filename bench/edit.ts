import { constants, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { buildApp } from '../src/app.ts'
import { createLocalDisk, type Disk } from '../src/core/read/disk.ts'
import { createSkillManager } from '../src/core/skill-manager.ts'
import { createToolRegistry } from '../src/tools/registry.ts'
import { createTools } from '../src/tools/tools.ts'
import type { Bench } from './bench.ts'
import { skillText } from './fixtures.ts'
import { median, type Row, spread } from './table.ts'

const SKILL = 'demo'
const MAX_CALLS = 16

/** Watcher and request race for an edit, so single edits differ. */
const EDITS = 5

/** Time after which the background work of an edit is over, in milliseconds. */
const QUIET_MS = 1_500

/** A descriptor with this flag cannot be read: see `open-inside.ts`. */
const O_PATH = 0o10000000

/** A disk, and the calls that it received. */
interface DiskCalls {
  readonly disk: Disk
  /** Returns the counts since the previous call. */
  take (): { readonly calls: number, readonly opens: number, readonly reads: number, readonly byCall: string }
}

/** Measures the first document after an edit: all disk calls from the edit on, including those of the watcher. */
export async function measureEdit ({ run, folder: parent }: Bench): Promise<Row[]> {
  run.part('disk calls of a document after one edit')
  const root = join(parent, 'edit')
  const mainFile = join(root, SKILL, 'SKILL.md')
  mkdirSync(join(root, SKILL), { recursive: true })
  writeFileSync(mainFile, skillText(SKILL, 4096))
  writeFileSync(join(root, SKILL, 'notes.md'), 'x'.repeat(512))

  const { disk, take } = countDiskCalls()
  const skills = createSkillManager({ projectRoots: [root], disk })
  const registry = createToolRegistry(createTools())
  const app = await buildApp({ skills, registry, logger: pino({ level: 'silent' }), version: '0.0.0', host: '127.0.0.1' })
  try {
    await skills.initialize()
    // A real connection, because injected requests do not share their stats.
    const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/skills/${SKILL}`
    const read = async () => (await (await fetch(url)).json() as { readonly documentation: string }).documentation
    await sleep(QUIET_MS)
    take()
    await read()
    await sleep(QUIET_MS)
    const first = take()
    const edits: Array<ReturnType<typeof take>> = []
    for (let edit = 0; edit < EDITS; edit++) {
      const edited = skillText(SKILL, 4096, `again ${edit}`)
      writeFileSync(mainFile, edited)
      if (await read() !== edited) throw new Error('the edit is not in the answer')
      edits.push(take())
      // What follows is the watcher's and the refresher's work.
      await sleep(QUIET_MS)
      take()
    }
    const calls = edits.map((edit) => edit.calls)
    const opens = Math.max(...edits.map((edit) => edit.opens))
    const reads = Math.max(...edits.map((edit) => edit.reads))
    return [{
      what: 'document after one edit of a two-file skill',
      against: '–',
      target: `≤ ${MAX_CALLS} disk calls, each file opened and read once`,
      measured: `${median(calls)} (${spread(calls, 0)}) calls; a file is opened ${opens} times and read ${reads} times at most`,
      note: `the last one: ${edits.at(-1)?.byCall}; the very first document: ${first.calls} calls`,
      pass: median(calls) <= MAX_CALLS && opens <= 1 && reads <= 1
    }]
  } finally {
    app.server.closeAllConnections()
    await app.close()
    await skills.close()
  }
}

function countDiskCalls (): DiskCalls {
  const local = createLocalDisk()
  const names = new Map<number, string>()
  let byCall = new Map<string, number>()
  let opens = new Map<string, number>()
  let reads = new Map<string, number>()

  function counted<Args extends readonly unknown[], Result> (call: string, method: (...args: Args) => Result) {
    return (...args: Args): Result => {
      add(byCall, call)
      return method(...args)
    }
  }

  return {
    disk: {
      stat: counted('stat', local.stat),
      lstat: counted('lstat', local.lstat),
      realpath: counted('realpath', local.realpath),
      readdir: counted('readdir', local.readdir),
      opendir: counted('opendir', local.opendir),
      readdirBytes: counted('readdir', local.readdirBytes),
      readlink: counted('readlink', local.readlink),
      fstat: counted('fstat', local.fstat),
      close: counted('close', local.close),
      open: counted('open', (path, flags) => {
        const descriptor = local.open(path, flags)
        // The service opens a file by its name with O_PATH, and then for reading through that descriptor.
        const name = names.get(Number(/^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1])) ?? path
        if (typeof descriptor === 'number') names.set(descriptor, name)
        if ((flags & (O_PATH | constants.O_DIRECTORY)) === 0) add(opens, name)
        return descriptor
      }),
      read: counted('read', (descriptor, buffer, offset, length, position) => {
        add(reads, names.get(descriptor) ?? '')
        return local.read(descriptor, buffer, offset, length, position)
      }),
      hasProc: local.hasProc
    },
    take () {
      const taken = {
        calls: sum(byCall.values()),
        opens: Math.max(0, ...opens.values()),
        reads: Math.max(0, ...reads.values()),
        byCall: [...byCall].sort(([, a], [, b]) => b - a).map(([call, count]) => `${count} ${call}`).join(', ')
      }
      byCall = new Map()
      opens = new Map()
      reads = new Map()
      return taken
    }
  }
}

function add (counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function sum (values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}
