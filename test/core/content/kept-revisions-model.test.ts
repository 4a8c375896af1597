import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { createFaultyDisk, passTick, saveAtomically, skill, skillText, startManager, textOf } from '../../helper/skills.ts'

/** Told from the delays of all other timers. */
const KEEP_MS = 123_456_789

/** Signatures of this age are trusted: what is unchanged is not read again. */
const MINUTE_MS = 60_000

const TEXTS = ['one', 'two', 'three']

const revisionOf = (text: string) => sha256(`${sha256(skillText('demo'))} SKILL.md\0${sha256(text)} a.txt\0`)

type Step =
  | { readonly act: 'edit' | 'ask', readonly text: string }
  | { readonly act: 'hand out' | 'read' }
  | { readonly act: 'wait', readonly share: number }

const steps: fc.Arbitrary<readonly Step[]> = fc.array(fc.oneof(
  { arbitrary: fc.record({ act: fc.constantFrom('edit' as const, 'ask' as const), text: fc.constantFrom(...TEXTS) }), weight: 4 },
  { arbitrary: fc.record({ act: fc.constantFrom('hand out' as const, 'read' as const) }), weight: 2 },
  { arbitrary: fc.record({ act: fc.constant('wait' as const), share: fc.constantFrom(0.4, 0.7) }), weight: 2 }
), { minLength: 10, maxLength: 40, size: 'max' })

/** Runs the timers of revisions by a clock of its own. No `t.intercept`, which notes the stack of each use: most of the time went there. */
function startClock (t: Test): { readonly now: number, wait (ms: number): void } {
  const timers = new Map<NodeJS.Timeout, { readonly at: number, readonly act: () => void }>()
  const [start, stop] = [setTimeout, clearTimeout]
  let now = 0
  globalThis.setTimeout = ((act: () => void, ms: number, ...rest: unknown[]) => {
    const timer = start(act as never, ms, ...rest as never[])
    if (ms === KEEP_MS) timers.set(timer, { at: now + ms, act })
    return timer
  }) as typeof setTimeout
  globalThis.clearTimeout = ((timer: NodeJS.Timeout) => {
    timers.delete(timer)
    stop(timer)
  }) as typeof clearTimeout
  t.teardown(() => { Object.assign(globalThis, { setTimeout: start, clearTimeout: stop }) })
  return {
    get now () { return now },
    wait (ms) {
      now += ms
      for (const [timer, { at, act }] of timers) {
        if (at > now || !timers.delete(timer)) continue
        stop(timer)
        act()
      }
    }
  }
}

/** What may be read by its revision: the present text, and each that was handed out, until its time after the change is over. */
class Model {
  present = TEXTS[0] ?? ''
  /** The present text, as far as anybody has asked. */
  noticed = this.present
  readonly ends = new Map<string, number>()

  notice (now: number): void {
    if (this.noticed === this.present) return
    for (const [text, end] of this.ends) if (end === Infinity) this.ends.set(text, now + KEEP_MS)
    if (this.ends.has(this.present)) this.ends.set(this.present, Infinity)
    this.noticed = this.present
  }

  handOut (): void {
    this.ends.set(this.present, Infinity)
  }

  pass (now: number): void {
    for (const [text, end] of this.ends) if (end <= now) this.ends.delete(text)
  }
}

t.test('K59: whatever happens, each revision that was handed out is readable for its time, and no other', async (t) => {
  const clock = startClock(t)
  const dir = t.testdir({})
  let runs = 0
  await fc.assert(fc.asyncProperty(steps, fc.boolean(), async (sequence, isAged) => {
    const root = t.testdir({ [`run-${++runs}`]: { demo: skill('demo', { 'a.txt': TEXTS[0] }) } })
    t.equal(root, dir)
    const manager = await startManager(t, [join(root, `run-${runs}`)], { keep: { keepMs: KEEP_MS }, disk: createFaultyDisk({ ageMs: isAged ? MINUTE_MS : 0 }) })
    const model = new Model()
    try {
      for (const step of sequence) {
        switch (step.act) {
          case 'edit':
            passTick(root)
            saveAtomically(join(root, `run-${runs}/demo/a.txt`), model.present = step.text)
            break
          case 'wait':
            clock.wait(step.share * KEEP_MS)
            model.pass(clock.now)
            break
          case 'hand out':
            model.notice(clock.now)
            model.handOut()
            if ((await manager.manifest('demo')).revision !== revisionOf(model.present)) return false
            break
          case 'read':
            if (await textOf(() => manager.readFile('demo', 'a.txt')) !== model.present) return false
            break
          case 'ask': {
            model.notice(clock.now)
            const isReadable = step.text === model.present || model.ends.has(step.text)
            const answer = await textOf(() => manager.at(revisionOf(step.text)).readFile('demo', 'a.txt'))
            if (isReadable ? answer !== step.text : !String(answer).startsWith('revision_changed')) return false
            // A refusal names the present revision, as an answer of that one does.
            if (!isReadable || step.text === model.present) model.handOut()
          }
        }
      }
      return true
    } finally {
      await manager.close()
    }
  }), { numRuns: 40 })
})
