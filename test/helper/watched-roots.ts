import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { join, sep } from 'node:path'
import type { Test } from 'tap'
import type { FolderWatch, WatchFolder } from '../../src/core/watch/folder-watcher.ts'
import type { WatchTargets } from '../../src/core/watch/root-watch.ts'
import { createWatcher, type Watcher, type WatcherOptions, type WatcherState } from '../../src/core/watch/watcher.ts'
import { osError, until } from './skills.ts'

/** Generous: other tests run on the same cores. */
export const DEADLINE_MS = 30_000

/** A watcher, and what it has emitted so far. */
export interface Watched {
  readonly watcher: Watcher
  /** Names of the hints; '' for the root itself, 'anything' for events that were lost. */
  readonly hints: string[]
  readonly states: WatcherState[]
  /** Resolves at the next hint with this name. */
  hinted (name: string): Promise<void>
}

export interface WatchedOptions extends Partial<WatcherOptions> {
  /** Whether each hint is answered with the present targets, as the manager does. Default true. */
  readonly following?: boolean
}

/** Of a machine that has such a disk somewhere: folders are held open on the way to them, and watched by their descriptors. */
export const BESIDE_NETWORK_DISK: Partial<WatcherOptions> = { readMountInfo: () => '40 22 0:40 / /elsewhere rw - nfs4 server:/share rw\n' }

/** A watcher that has been set up. */
export async function watchRoot (t: Test, root: string, { following = true, ...options }: WatchedOptions = {}): Promise<Watched> {
  const news = new EventEmitter().setMaxListeners(0)
  const hints: string[] = []
  const states: WatcherState[] = []
  const watcher = createWatcher({ root, ...options })
  t.teardown(() => { watcher.close() })
  watcher.states.subscribe((state) => { states.push(state) })
  const note = (hint: string): void => {
    hints.push(hint)
    news.emit('hint', hint)
  }
  watcher.hints.subscribe((name) => {
    if (following) watcher.follow(targetsIn(root))
    note(name)
  })
  watcher.missed.subscribe(() => { note('anything') })
  watcher.follow(targetsIn(root))
  await until(() => watcher.state.status !== 'starting')
  return {
    watcher,
    hints,
    states,
    hinted: (name) => new Promise((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`no hint '${name}' in ${DEADLINE_MS} ms; hints: ${hints.join(', ')}`)) }, DEADLINE_MS)
      news.on('hint', (hint) => {
        if (hint !== name) return
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

/** What the manager finds in a root. */
export function targetsIn (root: string): WatchTargets {
  const folders = new Map<string, { realPath: string }>()
  const realPath = realFolder(root)
  if (realPath === undefined) return { realPath, folders }
  for (const name of namesIn(realPath)) {
    const folder = realFolder(join(realPath, name))
    if (!name.startsWith('.') && folder?.startsWith(realPath + sep)) folders.set(name, { realPath: folder })
  }
  return { realPath, folders }
}

/** Does something and waits for the hint that it must cause. */
export async function expectHint (watched: Watched, name: string, act: () => void): Promise<void> {
  const hint = watched.hinted(name)
  act()
  await hint
}

/** For a folder whose watch is only being set: edits until a hint comes, three times, since the first may be about the change before. */
export async function expectWatched (watched: Watched, name: string, file: string): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const hint = watched.hinted(name)
    const timer = setInterval(() => { fs.appendFileSync(file, 'x') }, 20)
    await hint.finally(() => { clearInterval(timer) })
  }
}

/** A kernel without watches to give. */
export function failWith (code: string): WatchFolder {
  return () => { throw osError(code) }
}

/** A kernel that gives watches and no events. */
export const BLIND: WatchFolder = () => ({ on () {}, close () {} })

/** A kernel whose events and errors a test makes. */
export function createFakeKernel () {
  const watches = new Map<string, { onEvent: (type: string, entry: string | null) => void, onError: (error: Error) => void }>()
  const watchFolder: WatchFolder = (folder, onEvent) => {
    const own = { onEvent, onError: (_error: Error) => {} }
    watches.set(folder, own)
    const watch: FolderWatch = {
      on: (_event, listener) => { own.onError = listener },
      close: () => { if (watches.get(folder) === own) watches.delete(folder) }
    }
    return watch
  }
  return {
    watchFolder,
    /** The folders that are watched. */
    get folders () { return [...watches.keys()] },
    change: (folder: string, entry: string | null) => { watches.get(folder)?.onEvent('rename', entry) },
    fail: (code: string) => { for (const { onError } of [...watches.values()]) onError(osError(code)) }
  }
}

function realFolder (path: string): string | undefined {
  try {
    const realPath = fs.realpathSync.native(path)
    return fs.statSync(realPath).isDirectory() ? realPath : undefined
  } catch {
    return undefined
  }
}

/** Folders may go meanwhile: the test's own is removed at its end. */
function namesIn (folder: string): string[] {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}
