import fs from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { until } from './skills.ts'
import { startStopwatch } from './timing.ts'

const DEADLINE_MS = 60_000
const HOUR_MS = 3_600_000

/** Nothing but the watcher reports changes. */
export const NO_TICKS = HOUR_MS

export function skillText (name: string, description = 'first'): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n`
}

export function skill (name: string, description?: string) {
  return { 'SKILL.md': skillText(name, description) }
}

export function writeSkill (folder: string, name: string, description: string): void {
  fs.writeFileSync(join(folder, 'SKILL.md'), skillText(name, description))
}

/** What a search must know: folder and description of each valid skill. */
export function onDisk (root: string): string[] {
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

export function inIndex (manager: SkillManager): string[] {
  return manager.availableNow().map(({ name, description }) => `${name}: ${description}`).sort()
}

/** A manager with the real watcher, set up or degraded. */
export async function startWatching (t: Test, root: string, options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createSkillManager({ projectRoots: [root], tickMs: NO_TICKS, ...options })
  t.teardown(() => manager.close())
  await manager.initialize()
  await until(() => !['off', 'starting'].includes(manager.status.watcher.status))
  return manager
}

/** Milliseconds until the index, from now on, is as the disk is. Nothing is asked of the manager meanwhile. */
export async function followed (manager: SkillManager, root: string): Promise<number> {
  const elapsed = startStopwatch()
  const wanted = onDisk(root).join('\n')
  const isRight = () => inIndex(manager).join('\n') === wanted
  if (isRight()) return 0
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => { reject(new Error(`on the disk:\n${wanted}\nin the index:\n${inIndex(manager).join('\n')}`)) }, DEADLINE_MS)
    const stop = manager.subscribe(() => {
      if (!isRight()) return
      clearTimeout(timer)
      stop()
      resolve()
    })
  })
  return elapsed()
}

export function numbered (count: number, prefix = 'skill'): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
}

/** As git does: each file is removed and made anew. */
export function checkOut (folder: string, name: string, description: string): void {
  for (const file of ['a.md', 'b.md', 'c.md', 'SKILL.md']) {
    fs.rmSync(join(folder, file))
    fs.writeFileSync(join(folder, file), file === 'SKILL.md' ? skillText(name, description) : description)
  }
}
