import type { Environment } from '../config/setting.ts'
import type { FetchedSource, FolderRoot, SourceKind } from './address/source-kind.ts'
import { createArchiveFetcher } from './archive/archive-fetcher.ts'
import { archiveKind } from './archive/archive-source.ts'
import type { Fetcher } from './fetcher.ts'
import { createGitFetcher } from './git/git-fetcher.ts'
import { gitKind } from './git/git-source.ts'
import { createOciFetcher } from './oci/oci-fetcher.ts'
import { ociKind } from './oci/oci-source.ts'
import { createS3Fetcher } from './s3/s3-fetcher.ts'
import { s3Kind } from './s3/s3-source.ts'
import { createSiteFetcher } from './site/site-fetcher.ts'
import { siteKind } from './site/site-source.ts'

/** A kind, and how its states are fetched. */
interface FetchedKind<Spec extends FetchedSource> extends SourceKind<Spec> {
  /** @param stateDir for what the fetcher keeps between fetches */
  createFetcher (source: Spec, stateDir: string, env: Environment): Fetcher
}

/**
 * The kinds of sources that are fetched. A new kind is a file with its addresses and settings, a file with its fetcher,
 * and one row here. The first kind that takes an address has it: an archive on a git host is an archive.
 */
const KINDS = [
  withFetcher(archiveKind, (source, _stateDir, env) => createArchiveFetcher(source, env)),
  withFetcher(gitKind, (source, stateDir, env) => createGitFetcher(source, stateDir, env)),
  withFetcher(s3Kind, (source, _stateDir, env) => createS3Fetcher(source, env)),
  withFetcher(ociKind, (source, _stateDir, env) => createOciFetcher(source, env)),
  withFetcher(siteKind, (source, stateDir, env) => createSiteFetcher(source, stateDir, env))
] as const

export type Source = ReturnType<typeof KINDS[number]['configure']>

/** What an operator names: a folder, or a source that is fetched. */
export type RootSpec = FolderRoot | Source

export const SOURCE_KINDS: ReadonlyArray<FetchedKind<Source>> = KINDS

function withFetcher<Spec extends FetchedSource> (
  kind: SourceKind<Spec>, createFetcher: FetchedKind<Spec>['createFetcher']
): FetchedKind<Spec> {
  return { ...kind, createFetcher }
}

export function kindOf ({ kind }: Source): FetchedKind<Source> {
  const found = SOURCE_KINDS.find((each) => each.kind === kind)
  if (found === undefined) throw new Error(`there is no kind of source ${kind}`)
  return found
}
