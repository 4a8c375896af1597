import { readFileSync } from 'node:fs'

/** The version in package.json, three folders above this file in `src` and in `dist`. */
export function readPackageVersion (): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
