import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { TrustPolicy, TrustSubject, Verdict } from '../../../src/core/content/trust/trust-policy.ts'
import { Signal } from '../../../src/core/shared/signal.ts'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { outcome, skill, skills, skillText, startManager } from '../../helper/skills.ts'

const MEBIBYTE = 1_048_576

/** A policy of all roots. */
function policyOf (check: (subject: TrustSubject) => Promise<boolean>): TrustPolicy {
  return {
    hiddenNames: new Set(),
    changed: new Signal(),
    judged: new Signal(),
    guards: () => true,
    judge: async (subject): Promise<Verdict> => ({
      isServed: await check(subject),
      report: { signed: false, signer: null, status: null, checked_revision: subject.manifest.revision, pinned: null },
      findings: []
    })
  }
}

t.test('K68: a large signature is read for a check while there is no room for answers', async (t) => {
  const root = t.testdir({ demo: { 'SKILL.md': skillText('demo'), 'skill.oms.sig': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) } })
  const policy = policyOf(async ({ read }) => (await read('skill.oms.sig', 2 * MEBIBYTE)).length > MEBIBYTE)
  const manager = await startManager(t, [root], { policy, hasRoom: async () => false })
  t.strictSame(await manager.list(), ['demo'])
})

t.test('K95: checks that fail after a change of the policy are made again with the next list, and what is not checked is not served', async (t) => {
  const root = t.testdir({ demo: skill('demo'), other: skill('other') })
  let failing = ''
  const policy = policyOf(async ({ manifest: { skill_name: name } }) => {
    if (name === failing) throw new Error(`no check of ${name}`)
    return true
  })
  const manager = await startManager(t, [root], { policy })
  t.strictSame(await manager.list(), ['demo', 'other'])
  failing = 'demo'
  policy.changed.emit()
  t.equal(await outcome(() => manager.list()), 'Error: no check of demo')
  t.equal(await outcome(() => manager.list()), 'Error: no check of demo', 'and again')
  failing = ''
  t.strictSame(await manager.list(), ['demo', 'other'])
})

t.test('K51 K95: a folder that comes is in the next list once it is checked, and not checked again without a change', async (t) => {
  const root = t.testdir(skills('demo'))
  const checked: string[] = []
  const policy = policyOf(async ({ manifest: { skill_name: name } }) => {
    checked.push(name)
    return name !== 'refused'
  })
  const manager = await startManager(t, [root], { policy })
  t.strictSame(await manager.list(), ['demo'])
  for (const name of ['other', 'refused']) {
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'SKILL.md'), skillText(name))
  }
  checked.length = 0
  t.strictSame(await manager.list(), ['demo', 'other'])
  t.strictSame(checked.toSorted(), ['other', 'refused'])
  t.strictSame([await manager.list(), checked.length], [['demo', 'other'], 2])
})

t.test('K95: a policy that begins to guard a root takes away what nobody has checked, at once', async (t) => {
  const guards = { isOn: false }
  const policy = { ...policyOf(async ({ manifest: { skill_name: name } }) => name === 'demo'), guards: () => guards.isOn }
  const manager = await startManager(t, [t.testdir(skills('demo', 'other'))], { policy })
  t.strictSame(await manager.list(), ['demo', 'other'])
  guards.isOn = true
  policy.changed.emit()
  t.strictSame(manager.namesNow(), [])
  t.strictSame(await manager.list(), ['demo'])
})
