import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { SkillError } from '../../src/core/shared/errors.ts'
import type { CatalogSkill } from '../../src/core/shared/skill.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { logCatalog } from '../../src/operator/catalog-log.ts'

export { createFaultyDisk, failing, type FaultyDisk, osError } from './disk.ts'

/** A valid main file. */
export function skillText (name: string, body = `Instructions of ${name}.\n`,
  description = `What ${name} is for`): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n${body}`
}

/** A folder for `t.testdir`; made anew each time: tap takes one object in two places for a cycle. */
export function skill (name: string, files: Readonly<Record<string, unknown>> = {}) {
  return { 'SKILL.md': skillText(name), ...files }
}

export function skills (...names: readonly string[]): Record<string, ReturnType<typeof skill>> {
  return Object.fromEntries(names.map((name) => [name, skill(name)]))
}

/**
 * Another process sees the file before or after, and never half of it.
 * @param temporary where the text is written first, on the same disk
 */
export function saveAtomically (file: string, text: string, temporary = `${file}.tmp`): void {
  fs.writeFileSync(temporary, text)
  fs.renameSync(temporary, file)
}

/** A manager without a watcher, closed with the test. */
export function createManager (t: Test, projectRoots: SkillManagerOptions['projectRoots'],
  options: Partial<SkillManagerOptions> = {}): SkillManager {
  const manager = createSkillManager({ projectRoots, watcher: false, ...options })
  logCatalog(manager.catalog, options.log)
  t.teardown(() => manager.close())
  return manager
}

/** The same, started and indexed. */
export async function startManager (t: Test, projectRoots: SkillManagerOptions['projectRoots'],
  options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createManager(t, projectRoots, options)
  await manager.initialize()
  return manager
}

/** Text of a document or a file, or the sentence of the refusal. */
export async function textOf (question: () => unknown): Promise<unknown> {
  try {
    const { bytes } = await question() as { bytes: Buffer }
    return bytes.toString()
  } catch (error) {
    return error instanceof SkillError ? `${error.code}: ${error.message}` : error
  }
}

/** The skill with this frontmatter name, else of this folder name; undefined when there is none. */
export async function findByDisplayName (manager: SkillManager, name: string): Promise<CatalogSkill | undefined> {
  try {
    return await manager.readByDisplayName(name, async ({ skill }) => skill)
  } catch (error) {
    if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
    throw error
  }
}

/** What is about to happen does so within some turns of the event loop; what takes longer is asked for at intervals. */
const TURNS = 20
const MAX_INTERVAL_MS = 20

/** Waits until something holds, leaving the processor to others; makes the test fail when it never does. */
export async function until (holds: () => boolean | Promise<boolean>, deadlineMs = 60_000): Promise<void> {
  const start = performance.now()
  for (let asked = 1; !await holds(); asked++) {
    if (performance.now() - start > deadlineMs) {
      throw new Error(`still not so after ${deadlineMs} ms: ${holds.toString()}`)
    }
    await (asked < TURNS ? nextTurn() : sleep(Math.min(asked - TURNS + 1, MAX_INTERVAL_MS)))
  }
}

/** Returns when the clock of file timestamps has moved on, so that the next change is stamped later than all before. */
export function passTick (folder: string): void {
  const probe = join(folder, 'tick')
  fs.writeFileSync(probe, '')
  const { ctimeNs } = fs.statSync(probe, { bigint: true })
  while (fs.statSync(probe, { bigint: true }).ctimeNs === ctimeNs) fs.writeFileSync(probe, '')
  fs.rmSync(probe)
}

/**
 * Files and folders below a folder that this process has open. Other tests of the process open and close their own
 * meanwhile.
 */
export function countOpenBelow (folder: string): number {
  const path = fs.realpathSync(folder)
  return fs.readdirSync('/proc/self/fd').filter((descriptor) => isOpenBelow(path, descriptor)).length
}

function isOpenBelow (folder: string, descriptor: string): boolean {
  try {
    return `${fs.readlinkSync(`/proc/self/fd/${descriptor}`)}/`.startsWith(`${folder}/`)
  } catch {
    return false // Closed meanwhile, as the one that lists them is.
  }
}

/** What a promise came to, as text: to compare answers and refusals alike. */
export async function outcome (question: () => unknown): Promise<unknown> {
  try {
    return await question()
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : error
  }
}
