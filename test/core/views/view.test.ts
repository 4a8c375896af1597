import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RootSkills } from '../../../src/core/root-skills.ts'
import { createSharedParts } from '../../../src/core/shared-parts.ts'
import { MemberLists } from '../../../src/core/views/member-lists.ts'
import { RootsSearch } from '../../../src/core/views/roots-search.ts'
import { SharedInspections } from '../../../src/core/views/shared-inspections.ts'
import { View } from '../../../src/core/views/view.ts'
import { skill, skillText, textOf } from '../../helper/skills.ts'

t.test('K51: an unknown name of a skill costs one comparison of all skills, and one more for each change meanwhile', async (t) => {
  const root = t.testdir({ alpha: skill('alpha'), beta: skill('beta') })
  const shared = createSharedParts({})
  const skills = new RootSkills({ root, type: 'project', watcher: false, shared })
  t.teardown(() => skills.close())
  await skills.start()
  let count = 0
  let meanwhile = () => {}
  const verify = skills.verifyDisplayNames.bind(skills)
  skills.verifyDisplayNames = async () => {
    count++
    meanwhile()
    await verify()
  }
  const member = { skills, inspections: new SharedInspections(skills), allows: () => true, isWhole: true }
  const view = new View('all', new MemberLists([member]), { phase: shared.phase, search: new RootsSearch([skills]) })
  const read = () => textOf(() => view.readByDisplayName('gamma', (state) => state.mainFile()))
  t.match(await read(), /^skill_not_found/)
  t.equal(count, 1)
  meanwhile = () => {
    if (count === 2) appendFileSync(join(root, 'beta/SKILL.md'), 'more')
  }
  t.match(await read(), /^skill_not_found/)
  t.equal(count, 3)
})

t.test('K52: a view that becomes another one goes on watching inside of the skills of the roots that stay', async (t) => {
  const shared = createSharedParts({})
  const skills = new RootSkills({ root: t.testdir({ alpha: skill('alpha') }), type: 'project', watcher: false, shared })
  t.teardown(() => skills.close())
  await skills.start()
  let followers = 0
  const counts: number[] = []
  const observe = skills.observe.bind(skills)
  skills.observe = (listener) => {
    const stop = observe(listener)
    counts.push(++followers)
    return () => {
      stop()
      counts.push(--followers)
    }
  }
  const member = { skills, inspections: new SharedInspections(skills), allows: () => true, isWhole: true }
  const ground = { phase: shared.phase, search: new RootsSearch([skills]) }
  const view = new View('before', new MemberLists([member]), ground)
  const stop = view.observe(() => {})
  view.become(new View('after', new MemberLists([{ ...member }]), ground))
  t.ok(Math.min(...counts) > 0, 'the last follower would end it for all skills')
  stop()
  t.equal(followers, 0)
})

t.test('K29, K51: the skill that was found by its frontmatter gives way to no other skill of the same folder name', async (t) => {
  const folder = t.testdir({ first: { alpha: { 'SKILL.md': skillText('gamma', 'in the first') } }, second: {}, third: { gamma: skill('gamma') } })
  const shared = createSharedParts({})
  const all = ['first', 'second', 'third'].map((name) => new RootSkills({ root: join(folder, name), type: 'project', watcher: false, shared }))
  t.teardown(async () => { for (const skills of all) await skills.close() })
  for (const skills of all) await skills.start()
  const members = all.map((skills) => ({ skills, inspections: new SharedInspections(skills), allows: () => true, isWhole: true }))
  const view = new View('all', new MemberLists(members), { phase: shared.phase, search: new RootsSearch(all) })
  const read = () => textOf(() => view.readByDisplayName('gamma', (state) => state.mainFile()))
  t.equal(await read(), skillText('gamma'), 'its folder has the name too')
  const find = view.find.bind(view)
  view.find = async (name) => {
    const found = await find(name)
    view.find = find
    mkdirSync(join(folder, 'second/gamma'))
    writeFileSync(join(folder, 'second/gamma/SKILL.md'), skillText('other'))
    return found
  }
  t.equal(await read(), skillText('gamma', 'in the first'))
})
