import type { FileList } from '../core/content/manifest.ts'
import { wellKnownFindings } from '../core/clients/discovery.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { Awaitable } from '../core/ground/async.ts'
import type { CatalogSkill, Finding } from '../core/ground/skill.ts'
import type { EntryState, JudgedEntry } from '../core/listing/entry.ts'
import { type TargetVerdict, verdictsOf } from './judge.ts'
import type { Subject } from './subject.ts'
import type { TargetName } from './targets.ts'
import { estimateTokens, type TokenEstimate } from './tokens.ts'

/**
 * Why clients of a door do not take a skill. Must not throw or reject.
 * @param document the main file
 */
export type FindingSource = (skill: CatalogSkill, listing: FileList, document: FileContent) => Awaitable<readonly Finding[]>

/** What the catalog has of a skill beside its content. */
export interface EntryVerdicts extends JudgedEntry {
  readonly tokens: TokenEstimate
  /** Only for targets that were chosen. */
  readonly targets?: readonly TargetVerdict[]
}

/** The one judge of all doors: made once, with what the clients of other doors say. */
export type Judging = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/** @param sources clients of doors that verdicts know nothing of; those of the well-known indexes are asked in any case */
export function createJudge (sources: readonly FindingSource[]): Judging {
  return async (state, targets) => {
    const subject = await subjectOf(state, sources)
    const { findings, targets: verdicts } = verdictsOf(subject, targets)
    return { tokens: tokensOf(subject, state.document), ...targets !== undefined && { targets: verdicts }, findings }
  }
}

/** The same for a skill that no catalog holds, with the verdicts of the chosen targets or of the format. */
export async function subjectOf ({ skill, manifest, document, fileFindings }: EntryStateOf<FileList>, sources: readonly FindingSource[]): Promise<Subject> {
  const ofClients = manifest === undefined || document === undefined
    ? []
    : [wellKnownFindings(skill, manifest, document.utf8), ...await Promise.all(sources.map((find) => find(skill, manifest, document)))]
  return { skill, document: document?.bytes, files: manifest?.files, otherFindings: [...fileFindings, ...ofClients.flat()] }
}

/** A state of which the files need not have been read. */
export type EntryStateOf<Listing> = Omit<EntryState, 'manifest'> & { readonly manifest: Listing | undefined }

const estimates = new WeakMap<FileContent, { readonly files: Subject['files'], readonly tokens: TokenEstimate }>()

/** Counted once for each state: to count is as dear as to parse. */
function tokensOf (subject: Subject, document: FileContent | undefined): TokenEstimate {
  if (document === undefined) return estimateTokens(subject)
  const known = estimates.get(document)
  if (known !== undefined && known.files === subject.files) return known.tokens
  const tokens = estimateTokens(subject)
  estimates.set(document, { files: subject.files, tokens })
  return tokens
}
