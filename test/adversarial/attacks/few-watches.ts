// Run where a user has too few watches, and may have more: says when the watcher is degraded, gets more, says when it
// works.
import { writeFileSync } from 'node:fs'
import { createSkillManager } from '../../../src/core/skill-manager.ts'
import { until } from '../../helper/skills.ts'

const skills = createSkillManager({ projectRoots: process.argv.slice(2), tickMs: 100 })
await skills.initialize()
await until(() => skills.parts.refresher.state.status === 'degraded')
console.log(JSON.stringify(skills.parts.refresher.state))
writeFileSync('/proc/sys/user/max_inotify_watches', '10000')
await until(() => skills.parts.refresher.state.status === 'watching')
console.log(JSON.stringify(skills.parts.refresher.state))
await skills.close()
