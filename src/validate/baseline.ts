import { dirname, relative, resolve, sep } from 'node:path'
import { isJsonObject } from '../core/shared/json.ts'
import { compareCodePoints } from '../core/shared/text.ts'
import { readRegularFileSync, replaceFile, whyUnreadable, whyUnwritable } from '../config/files/files.ts'
import { PathError } from './with-skills.ts'

/** Findings that a repository has accepted: codes by the path of the skill. */
export interface Baseline {
  readonly accepts: (path: string, code: string) => boolean
}

/** How a baseline calls a skill that reports call by this path. */
type BaselineKey = (path: string) => string

/**
 * The path from the folder of the baseline, so that it counts wherever the command runs.
 * @param fetched names of sources, by which reports call their skills
 */
export function baselineKeys (file: string, cwd: string, fetched: readonly string[]): BaselineKey {
  return (path) => fetched.some((name) => path.startsWith(`${name}/`))
    ? path
    : relative(dirname(file), resolve(cwd, path)).split(sep).join('/') || '.'
}

/**
 * Of a skill without a key of its own, that of its path in reports counts: earlier versions wrote it.
 * @throws {PathError} for a file that is not there, or has another shape
 */
export function readBaseline (file: string, keyOf: BaselineKey): Baseline {
  const fail = (sentence: string) =>
    new PathError(`the baseline ${JSON.stringify(file)} ${sentence}; --write-baseline writes it`)
  let accepted: unknown
  try {
    accepted = JSON.parse(readRegularFileSync(file).toString())
  } catch (error) {
    throw fail(error instanceof SyntaxError ? 'is not valid JSON' : `cannot be read: ${whyUnreadable(error)}`)
  }
  if (!isCodesByPath(accepted)) throw fail('must be an object of paths, each with a list of codes')
  const codes = new Map(Object.entries(accepted).map(([path, list]) => [path, new Set(list)]))
  return { accepts: (path, code) => (codes.get(keyOf(path)) ?? codes.get(path))?.has(code) === true }
}

/** Writes what is there now as accepted, sorted, so that a change of it is easy to read. */
export async function writeBaseline (
  file: string, found: ReadonlyMap<string, ReadonlySet<string>>, keyOf: BaselineKey
): Promise<void> {
  const entries = [...found].map(([path, codes]) => [keyOf(path), [...codes].sort(compareCodePoints)] as const)
    .sort(([a], [b]) => compareCodePoints(a, b))
  try {
    await replaceFile(file, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`)
  } catch (error) {
    throw new PathError(`the baseline ${JSON.stringify(file)} cannot be written (${whyUnwritable(error)})`)
  }
}

function isCodesByPath (value: unknown): value is Readonly<Record<string, readonly string[]>> {
  return isJsonObject(value) && Object.values(value)
    .every((codes) => Array.isArray(codes) && codes.every((code) => typeof code === 'string'))
}
