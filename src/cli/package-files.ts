import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export { readPackageVersion } from '../config/files/version.ts'

// Two folders above this file, in `src` and in `dist`.

/** The example skills of the package. */
export const EXAMPLE_SKILLS = fileURLToPath(new URL('../../skills', import.meta.url))

/** The git commit that `dist` was built from; undefined where that is not known. */
export function readCommit (): string | undefined {
  try {
    return readFileSync(new URL('../commit', import.meta.url), 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}
