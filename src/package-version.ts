import { readFileSync } from 'node:fs'

/** The version in package.json, which lies one folder above both `src` and `dist`. */
export function readPackageVersion (): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { readonly version: string }
  return version
}
