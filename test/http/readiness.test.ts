import t from 'tap'
import type { SkillStatus } from '../../src/core/service.ts'
import { judgeReadiness } from '../../src/http/readiness.ts'

const PARTS = { remarks: () => [], auditState: () => 'working' as const, shutdown: { isStopping: false } }

function statusWith (lastError: string): SkillStatus {
  return {
    ready: true,
    indexed: true,
    skills: 1,
    generation: 1,
    roots: [{ name: 'skills', type: 'project', state: 'ok', skills: 1, skipped: 0 }],
    watcher: { status: 'degraded', mode: 'events', errors: 1, lastError },
    failures: []
  }
}

t.test('K54: where the kernel refuses watches, /readyz says what to raise: the code alone speaks of a full disk', async (t) => {
  for (const [code, cause] of [
    ['ENOSPC', 'ENOSPC: raise fs.inotify.max_user_watches'],
    ['EMFILE', 'EMFILE: raise fs.inotify.max_user_instances or the limit of open files'],
    ['EIO', 'EIO']
  ] as const) {
    const { isReady, detail } = judgeReadiness(statusWith(code), PARTS)
    t.equal(isReady, true)
    t.equal(detail, `changes cause no events (${cause}); the folders are compared at intervals`)
  }
})
