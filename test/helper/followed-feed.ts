import fs from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { type ChangeFeed, createChangeFeed, type FeedEvent } from '../../src/core/events/change-feed.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { countKernelWatches } from './kernel-watches.ts'
import { createFaultyDisk, saveAtomically, skill, skillText, until } from './skills.ts'
import { startStopwatch } from './timing.ts'
import { NO_TICKS } from './watched-index.ts'

/** Older than any step of a timestamp: skills that a test has just made count as made long ago. */
export const AGE_MS = 60_000

/** For a single change while other tests run on the same cores: far below the pause between two ticks. */
export const REPORTED_UNDER_LOAD_MS = 5_000

interface Followed {
  readonly skills: SkillManager
  readonly feed: ChangeFeed
  readonly events: FeedEvent[]
  /** `type name` of each event since the last call. */
  news (): string[]
  /** Milliseconds until the next event about a skill, from now on. */
  next (name: string): Promise<number>
  stop (): void
}

/** A skill manager with the real watcher, and a feed that has inspected all skills once and watches what is inside of them. */
export async function follow (t: Test, root: string, options: Partial<SkillManagerOptions> = {}): Promise<Followed> {
  const skills = createSkillManager({ projectRoots: [root], tickMs: NO_TICKS, disk: createFaultyDisk({ ageMs: AGE_MS }), ...options })
  await skills.initialize()
  await until(() => options.watcher === false || !['off', 'starting'].includes(skills.status.watcher.status))
  const feed = createChangeFeed({ skills })
  const events: FeedEvent[] = []
  let taken = 0
  const stop = feed.subscribe((event) => { if (event.type !== 'position') events.push(event) })
  t.teardown(async () => {
    feed.close()
    await skills.close()
  })
  await until(() => feed.revision !== undefined, 120_000)
  return {
    skills,
    feed,
    events,
    stop,
    news () {
      const latest = events.slice(taken).map(eventText)
      taken = events.length
      return latest
    },
    async next (name) {
      const elapsed = startStopwatch()
      const count = events.length
      await until(() => events.slice(count).some((event) => 'name' in event && event.name === name), 60_000)
      return elapsed()
    }
  }
}

/** The kernel reports a change twice at times: the revision is unknown while the skill is compared once more. */
export async function knownRevision (feed: ChangeFeed): Promise<string | undefined> {
  await until(() => feed.revision !== undefined)
  return feed.revision
}

/** Waits until every folder that is there is under watch. */
export async function allWatched (before: number, root: string): Promise<void> {
  await until(() => process.platform !== 'linux' || countKernelWatches() - before === 2 + countFolders(root))
}

function countFolders (folder: string): number {
  const folders = fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== '.git')
  return folders.reduce((sum, { name }) => sum + 1 + countFolders(join(folder, name)), 0)
}

export function eventText (event: FeedEvent): string {
  return 'name' in event ? `${event.type} ${event.name}` : event.type
}

/** A skill with folders inside. */
export function deep (name: string) {
  return skill(name, { references: { 'x.md': 'x', more: { 'y.md': 'y' } }, '.git': { config: 'secret' } })
}

export function write (file: string, text: string): void {
  fs.mkdirSync(dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

/** Each makes one event about the skill; the next begins when that has come. */
export const EDITS: ReadonlyArray<readonly [title: string, edit: (folder: string) => void]> = [
  ['the main file', (folder) => { fs.writeFileSync(join(folder, 'SKILL.md'), skillText('a', 'edited')) }],
  ['a file in a folder', (folder) => { fs.appendFileSync(join(folder, 'references/x.md'), '!') }],
  ['a file two folders deep', (folder) => { fs.appendFileSync(join(folder, 'references/more/y.md'), '!') }],
  ['an atomic save two folders deep', (folder) => { saveAtomically(join(folder, 'references/more/y.md'), 'saved') }],
  ['a new file', (folder) => { fs.writeFileSync(join(folder, 'references/new.md'), 'new') }],
  ['a file removed', (folder) => { fs.rmSync(join(folder, 'references/new.md')) }],
  ['new folders with a file', (folder) => { write(join(folder, 'a/b/c/d.md'), 'deep') }],
  ['an edit in those', (folder) => { fs.appendFileSync(join(folder, 'a/b/c/d.md'), '!') }],
  ['a folder renamed', (folder) => { fs.renameSync(join(folder, 'a'), join(folder, 'z')) }],
  ['an edit below its new name', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['a folder removed and made again', (folder) => {
    fs.rmSync(join(folder, 'z/b'), { recursive: true })
    write(join(folder, 'z/b/c/d.md'), 'again')
  }],
  ['an edit in that', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['a folder swapped by two renames', (folder) => {
    write(join(folder, '../../next/c/d.md'), 'swapped')
    fs.renameSync(join(folder, 'z/b'), join(folder, '../../previous'))
    fs.renameSync(join(folder, '../../next'), join(folder, 'z/b'))
  }],
  ['an edit in the other one', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['the skill swapped by two renames', (folder) => {
    fs.cpSync(folder, join(folder, '../../copy'), { recursive: true })
    fs.appendFileSync(join(folder, '../../copy/references/x.md'), '!')
    fs.renameSync(folder, join(folder, '../../old'))
    fs.renameSync(join(folder, '../../copy'), folder)
  }],
  ['an edit inside of that', (folder) => { fs.appendFileSync(join(folder, 'references/more/y.md'), '!') }]
]
