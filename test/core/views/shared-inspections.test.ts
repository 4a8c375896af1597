import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RootSkills } from '../../../src/core/root-skills.ts'
import { createSharedParts } from '../../../src/core/shared-parts.ts'
import type { SkillManagerOptions } from '../../../src/core/skill-manager-options.ts'
import { SharedInspections } from '../../../src/core/views/shared-inspections.ts'
import { until } from '../../helper/skills.ts'
import { NO_TICKS, skill } from '../../helper/watched-index.ts'

/** A root whose inspections are counted. */
async function createInspections (t: Test, options: Pick<SkillManagerOptions, 'watcher' | 'times'> = {}) {
  const root = t.testdir({ alpha: skill('alpha'), beta: skill('beta') })
  const skills = new RootSkills({ root, type: 'project', shared: createSharedParts({}), ...options })
  t.teardown(() => skills.close())
  await skills.start()
  await skills.indexed()
  let count = 0
  const inspect = skills.files.inspect.bind(skills.files)
  Object.assign(skills.files, {
    inspect: (...args: Parameters<typeof inspect>) => {
      count++
      return inspect(...args)
    }
  })
  return { root, inspections: new SharedInspections(skills), count: () => count }
}

/** A state that may be kept: the files of a test are too young for that at first. */
async function lastingState (inspections: SharedInspections, name: string): Promise<string | undefined> {
  let revision: string | undefined
  await until(async () => {
    const state = await inspections.inspect(name)
    if (state === undefined || 'ended' in state) return false
    revision = state.revision
    return state.fingerprint !== undefined
  })
  return revision
}

t.test('whoever follows a root shares one inspection of each skill', async (t) => {
  // A watcher that has just begun may report what was there before it.
  const { inspections, count } = await createInspections(t, { watcher: false, times: NO_TICKS })
  const stops = [inspections.observe(() => {}), inspections.observe(() => {})]
  await lastingState(inspections, 'alpha')
  const before = count()
  const states = [await inspections.inspect('alpha'), await inspections.inspect('alpha'), ...await Promise.all([inspections.inspect('alpha'), inspections.inspect('alpha')])]
  t.equal(count(), before)
  t.equal(new Set(states).size, 1, 'one object, by which followers know that nothing has changed')
  await Promise.all([inspections.inspect('nosuch'), inspections.inspect('nosuch'), inspections.inspect('nosuch')])
  t.equal(count(), before + 1, 'also while it runs')
  for (const stop of stops) stop()
  await inspections.inspect('alpha')
  t.equal(count(), before + 2, 'without followers nobody says what has changed, so nothing is kept')
})

t.test('a change ends what is kept, before any follower hears of it', async (t) => {
  const { root, inspections } = await createInspections(t)
  const found: Array<Promise<unknown>> = []
  const stop = inspections.observe((names) => { if (names === undefined || [...names].includes('alpha')) found.push(lastingState(inspections, 'alpha')) })
  t.teardown(stop)
  const before = await lastingState(inspections, 'alpha')
  found.length = 0
  appendFileSync(join(root, 'alpha', 'SKILL.md'), 'more\n')
  await until(() => found.length > 0)
  t.not(await found[0], before)
})
