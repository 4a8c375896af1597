import { join } from 'node:path'
import t from 'tap'
import { LiveViews } from '../../src/access/live-views.ts'
import { Policy } from '../../src/access/policy.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { newSecret } from '../helper/guarded.ts'
import { skill } from '../helper/skills.ts'

const RULES = 'rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'

function policyOf (...entries: readonly string[]): Policy {
  return Policy.parse('access.yaml', `tokens:\n${entries.map((entry) => `  - ${entry}\n`).join('')}${RULES}`, { roots: ['docs', 'ops'], resource: undefined })
}

t.test('K64: no answer mixes two policies: with another one streams see other skills, and answers that were begun see the same', async (t) => {
  const folder = t.testdir({ docs: { guide: skill('guide') }, ops: { pager: skill('pager') } })
  const skills = createSkillManager({ projectRoots: ['docs', 'ops'].map((root) => join(folder, root)), watcher: false })
  t.teardown(() => skills.close())
  await skills.initialize()
  const [ann, bob] = [newSecret('ann', 'groups: [docs]'), newSecret('bob', 'groups: [docs]')]
  const policy = policyOf(ann.entry, bob.entry)
  const views = new LiveViews(skills, policy)
  t.teardown(() => { views.close() })
  const proof = { kind: 'token', digest: /[\da-f]{64}/.exec(bob.entry)?.[0] ?? '' } as const
  const principal = policy.principalOf(proof)
  if (principal === undefined) throw new Error('the token is unknown')
  const { view, followed } = views.of(principal.view)
  const told: string[] = []
  followed.subscribe(({ added, removed }) => { told.push(...added.map((name) => `+${name}`), ...removed.map((name) => `-${name}`)) })
  views.watch(principal, proof, followed, () => { told.push('ended') })
  t.strictSame(await view.list(), ['guide'])
  const { generation } = view

  views.usePolicy(policyOf(ann.entry, bob.entry.replace('[docs]', '[ops]')))
  t.strictSame(await view.list(), ['guide'], 'the answer that was begun')
  t.match(await view.find('pager'), undefined)
  t.strictSame(await followed.list(), ['pager'], 'the stream')
  t.strictSame(told.sort(), ['+pager', '-guide'])

  views.usePolicy(policy)
  const again = views.of(principal.view).view
  t.strictSame([await again.list(), await followed.list()], [['guide'], ['guide']])
  t.not(again, view)
  t.ok(generation > 0 && view.generation === generation)
})

t.test('K64: a change of policy is told to nobody whose skills stay the same, by pattern or not', async (t) => {
  const folder = t.testdir({ docs: { guide: skill('guide'), other: skill('other') }, ops: { pager: skill('pager') } })
  const skills = createSkillManager({ projectRoots: ['docs', 'ops'].map((root) => join(folder, root)), watcher: false })
  t.teardown(() => skills.close())
  await skills.initialize()
  const rules = '  - { groups: [docs], skills: [guide] }\n'
  const policyWith = (more: string) => Policy.parse('access.yaml', `rules:\n${rules}${more}`, { roots: ['docs', 'ops'], resource: undefined })
  const views = new LiveViews(skills, policyWith(''))
  t.teardown(() => { views.close() })
  const { followed } = views.of('["docs"]')
  const told: object[] = []
  followed.subscribe((change) => { told.push(change) })
  views.usePolicy(policyWith('  - { groups: [ops] }\n'))
  t.equal(views.of('["docs"]').followed, followed, 'nor are its events lost for who resumes')
  views.usePolicy(policyWith('  - { groups: [docs], skills: [gui*] }\n'))
  t.strictSame(told, [])
  t.not(views.of('["docs"]').followed, followed, 'the terms are others, although they give the same now')
})
