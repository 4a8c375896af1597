import { readCommit, readPackageVersion } from '../operator/package-files.ts'

/** Returns the version of the package, with the commit that it was built from where that is known. */
export function versionText (): string {
  const commit = readCommit()
  return `${readPackageVersion()}${commit === undefined ? '' : ` (${commit.slice(0, 12)})`}`
}
