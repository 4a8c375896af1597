import { readFileSync } from 'node:fs'

/** The version in package.json, two folders above this one, in `src` and in `dist`. */
export function readPackageVersion (): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }
  return version
}
