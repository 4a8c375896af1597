import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { CoreLog } from '../../src/core/shared/log.ts'
import { parseAddress, type RootSpec, type Source } from '../../src/sources/kinds.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import { Sources, type SourcesOptions } from '../../src/sources/sources.ts'
import type { SourceStatus } from '../../src/schemas/health.ts'
import { startManager } from './skills.ts'

interface LogLine {
  readonly level: 'info' | 'warn'
  readonly details: object
  readonly message: string
}

/** A log that keeps its lines. */
export function createLog (): { readonly lines: readonly LogLine[], readonly log: CoreLog } {
  const lines: LogLine[] = []
  return {
    lines,
    log: {
      info: (details, message) => { lines.push({ level: 'info', details, message }) },
      warn: (details, message) => { lines.push({ level: 'warn', details, message }) }
    }
  }
}

/** A source by its address, with more settings. */
export function sourceAt (address: string, more: Partial<Source> = {}): Source {
  return { ...parseAddress(address), ...more } as Source
}

/** Replaces all folders and sources, as a reload does. */
export async function setSources (sources: Sources, specs: readonly RootSpec[]): Promise<void> {
  const prepared = await sources.prepare(specs)
  prepared.commit()
  await prepared.retire()
}

/** Opens sources, syncs them once, and starts a manager on what they publish. */
export async function openSources (t: Test, sources: readonly RootSpec[],
  { guard, stateDir = join(t.testdirName, 'state'), ...options }: Partial<SourcesOptions> & {
    stateDir?: string
    guard?: Parameters<Sources['guardBy']>[0]
  } = {}) {
  const { lines, log } = createLog()
  // The state folder is private, and so are the folders that are made with it.
  mkdirSync(t.testdirName, { recursive: true })
  const opened = new Sources({ env: { PATH: process.env['PATH'] }, log, state: new StateFolder(stateDir), ...options })
  t.teardown(() => opened.close())
  await setSources(opened, sources)
  if (guard !== undefined) opened.guardBy(guard)
  await opened.sync()
  const skills = await startManager(t, opened.roots)
  return { sources: opened, skills, log: lines, stateDir, status: () => opened.status[0] as SourceStatus }
}
