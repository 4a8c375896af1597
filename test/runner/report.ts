import { stripVTControlCharacters } from 'node:util'
import type { Failure, FileResults } from './tap-results.ts'

export interface FileRun {
  /** Path of the test file from the root of the project, or what several in one process are called. */
  readonly file: string
  /** Test files that ran in the process. */
  readonly files: number
  readonly seconds: number
  readonly results: FileResults
  /** Why the process of the file has failed, beside its assertions; undefined when it ended well. */
  readonly broken?: string | undefined
  readonly stderr: string
}

export interface Totals {
  readonly passed: number
  readonly failed: number
}

const SLOWEST = 10
const CALL_IN_TEST = /\(?([\w./-]+\.test\.ts:\d+):\d+\)?/
const MAX_STDERR_LINES = 40
/** A place in a translated file, followed by the one in its source. */
const TRANSLATED = /\(?\S*\.tap\/run-\S+ (\(\S+\))/
const MAX_DIAGNOSTIC_LINES = 60
/** Of one file: what follows is as a rule of the same cause. */
const MAX_FAILURES = 10

/** Tests that passed and failed; a process that broke counts as a failed test. */
export function totalsOf (runs: readonly FileRun[]): Totals {
  const failed = runs.reduce((sum, { results, broken }) => sum + results.failedTests + Number(broken !== undefined), 0)
  const passed = runs.reduce((sum, { results }) => sum + results.tests - results.failedTests, 0)
  return { passed, failed }
}

/** The summary for a person: the slowest files, what was left out, the totals, and at the end what failed. */
export function renderReport (runs: readonly FileRun[], seconds: number): string {
  const { passed, failed } = totalsOf(runs)
  const assertions = runs.reduce((sum, { results }) => sum + results.assertions, 0)
  const files = runs.reduce((sum, run) => sum + run.files, 0)
  const slowest = runs.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  const lines = ['The slowest files:', ...slowest.map((run) => `${run.seconds.toFixed(1).padStart(7)} s  ${run.file}`), '']

  const skipped = runs.flatMap(({ file, results }) => results.skipped.map(({ path, reason }) => `  ${file}: ${path.join(' > ')}${reason === '' ? '' : ` (${reason})`}`))
  if (skipped.length > 0) lines.push(`Skipped (${skipped.length}):`, ...skipped, '')

  lines.push(`Tests: ${passed} passed, ${failed} failed, ${skipped.length} skipped`)
  lines.push(`${assertions} assertions in ${files} ${files === 1 ? 'file' : 'files'} in ${duration(seconds)}`)
  const failures = runs.flatMap(renderFailures)
  if (failures.length > 0) lines.push('', 'Failures:', ...failures)
  return escapeControls(stripVTControlCharacters(lines.join('\n')))
}

function renderFailures ({ file, results, broken, stderr }: FileRun): readonly string[] {
  const lines = results.failures.slice(0, MAX_FAILURES).flatMap((failure) => ['', `${placeOf(file, failure)}  ${failure.path.join(' > ')}`, ...indent(detailsOf(failure), MAX_DIAGNOSTIC_LINES)])
  if (results.failures.length > MAX_FAILURES) lines.push('', `${file}  and ${results.failures.length - MAX_FAILURES} more failures`)
  if (broken !== undefined) lines.push('', `${file}  ${broken}`)
  if (lines.length > 0 && stderr.trim() !== '') lines.push(`  ${file} wrote to stderr:`, ...indent(stderr.trimEnd().split('\n').slice(-MAX_STDERR_LINES), MAX_STDERR_LINES))
  return lines
}

/** File and line of the assertion; of one in a helper, where the test called it. */
function placeOf (file: string, { diagnostics: { at, stack } }: Failure): string {
  const call = typeof stack === 'string' ? CALL_IN_TEST.exec(stack)?.[1] : undefined
  if (call !== undefined) return call
  if (typeof at !== 'object' || at === null || !('lineNumber' in at)) return file
  return `${'fileName' in at ? String(at.fileName) : file}:${String(at.lineNumber)}`
}

/** What explains the failure, the shortest that there is: the difference, or both values, or the stack. */
function detailsOf ({ diagnostics }: Failure): readonly string[] {
  // tap lists each socket that is open when a test takes too long.
  const { diff, found, wanted, doNotWant, compare, stack, source, at, handles, ...others } = diagnostics
  const lines: string[] = []
  if (typeof diff === 'string') lines.push(...diff.trimEnd().split('\n'))
  else {
    for (const [name, value] of Object.entries({ ...others, compare, wanted, doNotWant, found })) if (value !== undefined) lines.push(`${name}: ${shown(value)}`)
  }
  if (typeof stack === 'string' && stack.trim() !== '') lines.push('at:', ...stack.trimEnd().split('\n').map((line) => `  ${line.replace(TRANSLATED, '$1')}`))
  return lines
}

/** Attacks are full of them, and a log with a NUL in it counts as binary. */
function escapeControls (text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function shown (value: unknown): string {
  // An error may carry the size of a file.
  return typeof value === 'string' ? value : JSON.stringify(value, (_key, each: unknown) => typeof each === 'bigint' ? String(each) : each)
}

function indent (lines: readonly string[], limit: number): readonly string[] {
  const kept = lines.slice(0, limit).map((line) => `  ${line}`)
  return lines.length > limit ? [...kept, `  (${lines.length - limit} more lines)`] : kept
}

function duration (seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  return minutes === 0 ? `${seconds.toFixed(1)} s` : `${minutes} min ${Math.round(seconds - minutes * 60)} s`
}
