import t from 'tap'
import type { TrustPolicy, TrustSubject, Verdict } from '../../../src/core/content/trust/trust-policy.ts'
import { Signal } from '../../../src/core/ground/signal.ts'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/ground/limits.ts'
import { outcome, skill, skillText, startManager } from '../../helper/skills.ts'

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
