import type { FolderRoot, SourceCommon, SourceKind } from './address/source-kind.ts'
import { archiveKind } from './archive/archive-source.ts'
import { gitKind } from './git/git-source.ts'
import { ociKind } from './oci/oci-source.ts'
import { s3Kind } from './s3/s3-source.ts'
import { siteKind } from './site/site-source.ts'

/**
 * The kinds of sources that are fetched: a new kind is a file and one row here. The first kind that takes an address
 * has it: an archive on a git host is an archive.
 */
const KINDS = [archiveKind, gitKind, s3Kind, ociKind, siteKind] as const

export type Source = ReturnType<typeof KINDS[number]['create']>

/** What an operator names: a folder, or a source that is fetched. */
export type RootSpec = FolderRoot | Source

export const SOURCE_KINDS: ReadonlyArray<SourceKind<Source>> = KINDS

export function kindOf ({ kind }: Source): SourceKind<Source> {
  return SOURCE_KINDS.find((each) => each.kind === kind) as SourceKind<Source>
}

/** Whatever decides which skills a source has: with another address, layout or prefix it is another source. */
export function identityOf (source: Source): unknown {
  const {
    type, intervalMs, timeoutMs, optional, auth, webhookSecretFile, configFile, ...identity
  }: Source & SourceCommon = source
  return identity
}
