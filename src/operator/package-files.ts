import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Paths in the package. `../..` is its root for this file in `src` and in `dist`.

/** The example skills. */
export const EXAMPLE_SKILLS = fileURLToPath(new URL('../../skills', import.meta.url))

export function readPackageVersion (): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}

/** Returns the git commit that `dist` was built from, if it is known. */
export function readCommit (): string | undefined {
  try {
    return readFileSync(new URL('../commit', import.meta.url), 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

/** Returns the version of the package, with the commit that it was built from where that is known. */
export function versionText (): string {
  const commit = readCommit()
  return `${readPackageVersion()}${commit === undefined ? '' : ` (${commit.slice(0, 12)})`}`
}
