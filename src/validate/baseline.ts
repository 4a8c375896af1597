import { readFileSync, writeFileSync } from 'node:fs'
import { errorCode } from '../core/disk/disk.ts'
import { isJsonObject } from '../core/ground/json.ts'
import { compareCodePoints } from '../core/ground/text.ts'
import { PathError } from './skills.ts'

/** Findings that a repository has accepted: codes by the path of the skill. */
export interface Baseline {
  readonly accepts: (path: string, code: string) => boolean
}

/** @throws {PathError} for a file that is not there, or has another shape */
export function readBaseline (file: string): Baseline {
  let accepted: unknown
  try {
    accepted = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new PathError(`the baseline ${JSON.stringify(file)} ${error instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read: --write-baseline writes it'}`)
  }
  if (!isCodesByPath(accepted)) throw new PathError(`the baseline ${JSON.stringify(file)} must be an object of paths, each with a list of codes`)
  const codes = new Map(Object.entries(accepted).map(([path, list]) => [path, new Set(list)]))
  return { accepts: (path, code) => codes.get(path)?.has(code) === true }
}

/** Writes what is there now as accepted, sorted, so that a change of it is easy to read. */
export function writeBaseline (file: string, found: ReadonlyMap<string, ReadonlySet<string>>): void {
  const entries = [...found].sort(([a], [b]) => compareCodePoints(a, b)).map(([path, codes]) => [path, [...codes].sort(compareCodePoints)] as const)
  try {
    writeFileSync(file, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`)
  } catch (error) {
    throw new PathError(`the baseline ${JSON.stringify(file)} cannot be written (${errorCode(error)})`)
  }
}

function isCodesByPath (value: unknown): value is Readonly<Record<string, readonly string[]>> {
  return isJsonObject(value) && Object.values(value).every((codes) => Array.isArray(codes) && codes.every((code) => typeof code === 'string'))
}
