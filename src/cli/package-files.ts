import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Two folders above this file, in `src` and in `dist`.

/** The example skills of the package. */
export const EXAMPLE_SKILLS = fileURLToPath(new URL('../../skills', import.meta.url))

/** The version in package.json. */
export function readPackageVersion (): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}

/** The git commit that `dist` was built from; undefined where that is not known. */
export function readCommit (): string | undefined {
  try {
    return readFileSync(new URL('../commit', import.meta.url), 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}
