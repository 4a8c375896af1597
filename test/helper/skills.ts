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

/** Returns a folder for `t.testdir`, each time a new object: tap refuses one object in two places as a cycle. */
export function skill (name: string, files: Readonly<Record<string, unknown>> = {}) {
  return { 'SKILL.md': skillText(name), ...files }
}

export function skills (...names: readonly string[]): Record<string, ReturnType<typeof skill>> {
  return Object.fromEntries(names.map((name) => [name, skill(name)]))
}

/**
 * Replaces a file in one step, so that no process sees half of it.
 * @param temporary where the text is written first, on the same disk
 */
export function saveAtomically (file: string, text: string, temporary = `${file}.tmp`): void {
  fs.writeFileSync(temporary, text)
  fs.renameSync(temporary, file)
}

/** Creates a manager without a watcher, which the test closes. */
export function createManager (t: Test, projectRoots: SkillManagerOptions['projectRoots'],
  options: Partial<SkillManagerOptions> = {}): SkillManager {
  const manager = createSkillManager({ projectRoots, watcher: false, ...options })
  logCatalog(manager.parts.catalog, options.log)
  t.teardown(() => manager.close())
  return manager
}

/** Creates a manager without a watcher, started and indexed. */
export async function startManager (t: Test, projectRoots: SkillManagerOptions['projectRoots'],
  options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createManager(t, projectRoots, options)
  await manager.initialize()
  return manager
}

/** Returns the text of a document or a file, or the message of its refusal. */
export async function textOf (question: () => unknown): Promise<unknown> {
  try {
    const { bytes } = await question() as { bytes: Buffer }
    return bytes.toString()
  } catch (error) {
    return error instanceof SkillError ? `${error.code}: ${error.message}` : error
  }
}

/** Returns the skill with this frontmatter name, else of this folder name, else undefined. */
export async function findByDisplayName (manager: SkillManager, name: string): Promise<CatalogSkill | undefined> {
  try {
    return await manager.readByDisplayName(name, async ({ skill }) => skill)
  } catch (error) {
    if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
    throw error
  }
}

/** Turns of the event loop after which a condition is checked at intervals: most become true within some turns. */
const TURNS = 20
const MAX_INTERVAL_MS = 20

/** Waits until a condition is true, and yields to others meanwhile; fails the test if it never is. */
export async function until (holds: () => boolean | Promise<boolean>, deadlineMs = 60_000): Promise<void> {
  const start = performance.now()
  for (let asked = 1; !await holds(); asked++) {
    if (performance.now() - start > deadlineMs) {
      throw new Error(`still not so after ${deadlineMs} ms: ${holds.toString()}`)
    }
    await (asked < TURNS ? nextTurn() : sleep(Math.min(asked - TURNS + 1, MAX_INTERVAL_MS)))
  }
}

/** Waits until the clock of file timestamps has moved on, so that the next change has a later stamp than all before. */
export function passTick (folder: string): void {
  const probe = join(folder, 'tick')
  fs.writeFileSync(probe, '')
  const { ctimeNs } = fs.statSync(probe, { bigint: true })
  while (fs.statSync(probe, { bigint: true }).ctimeNs === ctimeNs) fs.writeFileSync(probe, '')
  fs.rmSync(probe)
}

/**
 * Returns the files and folders below a folder that this process has open. Other tests of the process may open and
 * close theirs meanwhile.
 */
export function countOpenBelow (folder: string): number {
  const path = fs.realpathSync(folder)
  return fs.readdirSync('/proc/self/fd').filter((descriptor) => isOpenBelow(path, descriptor)).length
}

function isOpenBelow (folder: string, descriptor: string): boolean {
  try {
    return `${fs.readlinkSync(`/proc/self/fd/${descriptor}`)}/`.startsWith(`${folder}/`)
  } catch {
    return false // The descriptor was closed meanwhile, as that of the listing is.
  }
}

/** Returns the result of a promise as text, to compare answers and refusals. */
export async function outcome (question: () => unknown): Promise<unknown> {
  try {
    return await question()
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : error
  }
}
