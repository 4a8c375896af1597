import fs from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import type { ChangeFeed, FeedEvent } from '../../src/core/events/change-feed.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { type SkillStatus, statusOf } from '../../src/http/readiness.ts'
import { logCatalog } from '../../src/operator/catalog-log.ts'
import { createFaultyDisk, skillText, until } from './skills.ts'
import { startStopwatch } from './timing.ts'

/** Options with which only the watcher reports changes. */
const NO_TICKS = 3_600_000

export function writeSkill (folder: string, name: string, description: string): void {
  fs.writeFileSync(join(folder, 'SKILL.md'), skillText(name, '', description))
}

/** Returns what a search has to know: folder and description of each valid skill. */
function onDisk (root: string): string[] {
  if (!fs.existsSync(root)) return []
  const found: string[] = []
  for (const name of fs.readdirSync(root)) {
    const file = join(root, name, 'SKILL.md')
    if (name.startsWith('.') || !fs.existsSync(file)) continue
    const description = /^description: (.*)$/m.exec(fs.readFileSync(file, 'utf8'))?.[1]
    if (fs.readFileSync(file, 'utf8').includes(`name: ${name}\n`)) found.push(`${name}: ${description}`)
  }
  return found.sort()
}

/** Returns the skills after a comparison with the disk. */
export async function freshStatusOf (manager: SkillManager): Promise<SkillStatus> {
  await manager.sync()
  return statusOf(manager)
}

export function inIndex (manager: SkillManager): string[] {
  return manager.availableIndexed().map(({ name, description }) => `${name}: ${description}`).sort()
}

/** Creates a manager whose watcher is ready, or degraded. */
export async function startWatching (t: Test, root: string,
  options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createSkillManager({ projectRoots: [root], tickMs: NO_TICKS, ...options })
  logCatalog(manager.parts.catalog, options.log)
  t.teardown(() => manager.close())
  await manager.initialize()
  await until(() => options.watcher === false || !['off', 'starting'].includes(manager.parts.refresher.state.status))
  return manager
}

/** Returns the milliseconds until the index equals the disk, without asking the manager for anything. */
export async function followed (manager: SkillManager, root: string): Promise<number> {
  const elapsed = startStopwatch()
  const wanted = onDisk(root)
  await until(() => isDeepStrictEqual(inIndex(manager), wanted))
  return elapsed()
}

export function numbered (count: number, prefix = 'skill'): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
}

/** Creates a manager with a watcher, and a feed that knows the revisions of all skills. */
export async function follow (t: Test, root: string, options: Partial<SkillManagerOptions> = {}) {
  // Older than any step of a timestamp, so that new skills of a test count as settled.
  const skills = await startWatching(t, root, { disk: createFaultyDisk({ ageMs: 60_000 }), ...options })
  const { feed } = skills
  const events: FeedEvent[] = []
  let taken = 0
  feed.subscribe((event) => { if (event.type !== 'position') events.push(event) })
  await until(() => feed.revision !== undefined, 120_000)
  return {
    skills,
    feed,
    events,
    /** `type name` of each event since the last call. */
    news () {
      const latest = events.slice(taken).map(eventText)
      taken = events.length
      return latest
    },
    /** Returns the milliseconds until the next event about a skill. */
    async next (name: string) {
      const elapsed = startStopwatch()
      const count = events.length
      await until(() => events.slice(count).some((event) => 'name' in event && event.name === name), 60_000)
      return elapsed()
    }
  }
}

/** The kernel may report a change twice: the revision is unknown while the skill is compared again. */
export async function knownRevision (feed: ChangeFeed): Promise<string | undefined> {
  await until(() => feed.revision !== undefined)
  return feed.revision
}

export function eventText (event: FeedEvent): string {
  return 'name' in event ? `${event.type} ${event.name}` : event.type
}
