import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { RootOptions } from '../../src/core/roots/root.ts'
import type { CoreLog } from '../../src/core/shared/log.ts'
import type { SkillManager, SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import type { Policy } from '../../src/trust/policy.ts'
import { Trust } from '../../src/trust/trust.ts'
import { startManager } from './skills.ts'

/** Skills of folders that a policy guards. */
export async function startGuarded (
  t: Test, bases: string | readonly (string | RootOptions)[], policy: Policy, options: Partial<SkillManagerOptions> = {},
  stateName = 'state'
): Promise<{ readonly skills: SkillManager, readonly trust: Trust, readonly log: readonly string[] }> {
  const log: string[] = []
  const line = (details: object, message: string): void => { log.push(`${message} ${JSON.stringify(details)}`) }
  const logger: CoreLog = { info: line, warn: line }
  const all = [bases].flat().map((base) => typeof base === 'string' ? { path: base } : base)
  const folder = mkdtempSync(join(tmpdir(), 'verified-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  const state = new StateFolder(join(folder, stateName))
  const trust = new Trust({ policy, state, log: logger })
  t.teardown(() => trust.close())
  const guarded = trust.guard(all)
  await trust.start()
  const skills = await startManager(t, guarded, options)
  return { skills, trust, log }
}
