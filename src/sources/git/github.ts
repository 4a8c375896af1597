import type { Source } from '../kinds.ts'

/** What a source at github.com published, as its own command line calls it. */
export interface GithubState {
  /** `<owner>/<name>`. */
  readonly repository: string
  /** Full commit id. */
  readonly commit: string
  /** In front of the names of skills here, and not there. */
  readonly prefix: string
}

const REPOSITORY =
  /^(?:https:\/\/(?:www\.)?github\.com\/|ssh:\/\/git@github\.com(?::22)?\/)([\w.-]+\/[\w.-]+?)(?:\.git)?\/?$/i
const COMMIT = /(?:^|@)sha1:([\da-f]{40})$/

/** @param revision of what is published, as the status has it; undefined before the first */
export function githubState (source: Source, revision: string | undefined): GithubState | undefined {
  const repository = source.kind === 'git' ? REPOSITORY.exec(source.url)?.[1] : undefined
  const commit = COMMIT.exec(revision ?? '')?.[1]
  if (repository === undefined || commit === undefined) return undefined
  return { repository, commit, prefix: source.prefix ?? '' }
}
