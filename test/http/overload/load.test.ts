import t from 'tap'
import { Load } from '../../../src/http/overload/load.ts'

interface Line {
  readonly level: string
  readonly fields: object
  readonly message: string
}

function createLoad (): { readonly load: Load, readonly lines: readonly Line[] } {
  const lines: Line[] = []
  const write = (level: string) => (fields: object, message: string) => { lines.push({ level, fields, message }) }
  return { load: new Load({ info: write('info'), warn: write('warn') }), lines }
}

t.test('K68: the mean delay of the event loop decides, with one line for each transition, and a level ends at half of its beginning', async (t) => {
  const { load, lines } = createLoad()
  const levels = [0, 249, 249, 250, 250, 200, 125, 124, 1_000, 1_000, 500, 499, 125, 10].map((delay) => {
    load.take(delay)
    return load.level
  })
  t.strictSame(levels, [0, 0, 0, 0, 1, 1, 1, 0, 0, 2, 2, 1, 1, 0])
  t.strictSame(lines.map(({ level, message }) => `${level}: ${message}`), [
    'warn: the service is overloaded: archives, searches and lists with entries are refused',
    'info: the service is no longer overloaded',
    'warn: the service is overloaded: everything but probes is refused',
    'warn: the service is overloaded: archives, searches and lists with entries are refused',
    'info: the service is no longer overloaded'
  ])
  t.match(lines[0]?.fields, { eventLoopDelayMs: 250 })
})

t.test('K68: a single stall is no overload, and the lower of two measurements counts', async (t) => {
  const { load, lines } = createLoad()
  for (const delay of [3_000, 0, 3_000, 0]) {
    load.take(delay)
    t.equal(load.level, 0)
  }
  t.strictSame(lines, [])
  for (const [delay, level] of [[3_000, 0], [300, 1], [3_000, 1], [3_000, 2]] as const) {
    load.take(delay)
    t.equal(load.level, level)
  }
})

t.test('K68: a process with nothing to do is not overloaded, and the measurement keeps it from ending in no way', async (t) => {
  const { load, lines } = createLoad()
  load.start()
  t.equal(load.level, 0)
  load.close()
  t.strictSame(lines, [])
})
