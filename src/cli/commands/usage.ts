import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { own } from '../../core/shared/json.ts'
import { compareCodePoints, counted } from '../../core/shared/text.ts'
import { reasonOf } from '../../operator/files.ts'
import { ConfigError } from '../../operator/setting.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'

interface Options {
  readonly roots?: readonly string[]
  readonly by?: 'day'
  readonly format?: 'text' | 'json' | 'csv'
}

/** Events of a caller who gets a document, a file or an archive. */
const READS: ReadonlySet<unknown> = new Set(['skill.read', 'skill.file_read', 'skill.archive'])

/** Number of events, and of different callers. */
interface Count {
  readonly day?: string
  readonly name: string
  readonly count: number
  readonly callers: number
}

/** Counts events by name, and by day if days are given. */
class Counter {
  readonly #counts = new Map<string, { day: string, name: string, count: number, callers: Set<string> }>()

  add (day: string, name: string, caller: string): void {
    const key = JSON.stringify([day, name])
    const found = this.#counts.get(key) ?? { day, name, count: 0, callers: new Set() }
    this.#counts.set(key, found)
    found.count++
    found.callers.add(caller)
  }

  /** The counts by day, the most frequent first. */
  get rows (): readonly Count[] {
    const rows = [...this.#counts.values()]
      .map(({ day, callers, ...row }) => ({ ...day !== '' && { day }, ...row, callers: callers.size }))
    return rows.sort((a, b) => compareCodePoints(a.day ?? '', b.day ?? '') || b.count - a.count ||
      compareCodePoints(a.name, b.name))
  }
}

/** Reports from audit logs how skills are used. The logs may be rotated, compressed and in any order. */
export const run: RunCommand<Options> = async ({ positionals, options }, { cwd, print, warn }) => {
  const { roots = [], by, format = 'text' } = options
  const [skills, emptySearches, refusals] = [new Counter(), new Counter(), new Counter()]
  const read = new Set<string>()
  let damaged = 0
  for (const file of positionals) {
    for await (const line of linesOf(resolve(cwd, file), file)) {
      const entry = parseLine(line)
      if (entry === undefined) damaged++
      else count(entry)
    }
  }
  if (damaged > 0) warn(`${counted(damaged, 'line')} skipped: not lines of an audit log`)
  const neverRead = (await namesIn(roots.map((root) => resolve(cwd, root)))).filter((name) => !read.has(name))
  const report = {
    skills: skills.rows, never_read: neverRead, empty_searches: emptySearches.rows, refusals: refusals.rows
  }
  if (format === 'json') print(`${JSON.stringify(report, undefined, 2)}\n`)
  else print(format === 'csv' ? toCsv(report) : toText(report, roots.length > 0))
  return 0

  function count (entry: object): void {
    const [event, outcome, target] = [own(entry, 'event'), own(entry, 'outcome'), own(entry, 'target')]
    const day = by === 'day' ? String(own(entry, 'time')).slice(0, 10) : ''
    const caller = String(own(own(entry, 'principal'), 'id') ?? own(own(entry, 'source'), 'address'))
    const skill = own(target, 'skill')
    const isRead = outcome === 'success' || outcome === 'not_modified'
    if (isRead && READS.has(event) && typeof skill === 'string') {
      skills.add(day, skill, caller)
      read.add(skill)
    } else if (event === 'skill.search' && own(target, 'results') === 0) {
      emptySearches.add(day, String(own(target, 'query')), caller)
    } else if (outcome === 'denied' || event === 'auth.failed') {
      refusals.add(day, String(own(target, 'code') ?? event), caller)
    }
  }
}

type Report = Readonly<Record<'skills' | 'empty_searches' | 'refusals', readonly Count[]>> &
  { readonly never_read: readonly string[] }

async function * linesOf (path: string, name: string): AsyncGenerator<string> {
  const file = createReadStream(path)
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  file.on('error', (error) => { input.destroy(error) })
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line !== '') yield line
  } catch (error) {
    throw new ConfigError(`${name} cannot be read (${reasonOf(error)})`, { cause: error })
  }
}

function parseLine (line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof own(value, 'event') === 'string' ? value as object : undefined
  } catch {
    return undefined
  }
}

async function namesIn (projectRoots: readonly string[]): Promise<readonly string[]> {
  if (projectRoots.length === 0) return []
  const { createSkillManager } = await import('../../core/skill-manager.ts')
  const skills = createSkillManager({ projectRoots, watcher: false })
  try {
    return await skills.list()
  } finally {
    await skills.close()
  }
}

function toText (report: Report, hasRoots: boolean): string {
  const { skills, never_read: unread, empty_searches: searches, refusals } = report
  // Names and queries are untrusted: quoted as JSON, no control character reaches the terminal.
  const quoted = (name: string): string => JSON.stringify(name)
  const table = (title: string, head: readonly string[], rows: readonly Count[]): string => {
    const cells = rows.map(({ day, name, count, callers }) =>
      [...day === undefined ? [] : [day], quoted(name), String(count), String(callers)])
    const days = rows[0]?.day === undefined ? [] : ['DAY']
    return rows.length === 0 ? `${title}: none\n` : `${title}\n${inColumns([[...days, ...head], ...cells])}`
  }
  return [
    table('Skills that were read', ['SKILL', 'READS', 'CALLERS'], skills),
    ...hasRoots ? [`Skills that were never read: ${unread.map(quoted).join(', ') || 'none'}\n`] : [],
    table('Searches without a result', ['QUERY', 'SEARCHES', 'CALLERS'], searches),
    table('Refused requests', ['REASON', 'REQUESTS', 'CALLERS'], refusals)
  ].join('\n')
}

function toCsv ({ skills, never_read: unread, empty_searches: searches, refusals }: Report): string {
  const rows = (kind: string, counts: readonly Count[]) =>
    counts.map(({ day = '', name, count, callers }) => [kind, day, name, count, callers])
  const all = [
    ['kind', 'day', 'name', 'count', 'callers'], ...rows('skill', skills),
    ...rows('never_read', unread.map((name) => ({ name, count: 0, callers: 0 }))),
    ...rows('empty_search', searches), ...rows('refusal', refusals)
  ]
  return all.map((row) => `${row.map(toCell).join(',')}\r\n`).join('')
}

/** Formats a cell (RFC 4180). Text that begins like a formula is escaped, since a spreadsheet would run it. */
function toCell (value: string | number): string {
  const text = String(value).replace(/^[=+\-@\t\r]/, "'$&")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
