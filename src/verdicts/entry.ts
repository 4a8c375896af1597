import pLimit from 'p-limit'
import { wellKnownFindings } from '../core/listing/discovery.ts'
import type { FileContent } from '../core/read/file-content.ts'
import { yieldIfNeeded } from '../core/shared/async.ts'
import type { CatalogSkill, FileList, Finding } from '../core/shared/skill.ts'
import type { EntryState, JudgedEntry } from '../core/listing/entry.ts'
import { type JudgedFinding, judgeFindings, type TargetVerdict, verdictsOn } from './judge.ts'
import type { Subject } from './subject.ts'
import type { TargetName } from './targets.ts'
import { estimateTokens, type TokenEstimate } from './tokens.ts'

/**
 * Why clients of an API do not take a skill. Must not throw or reject.
 * @param mainFile its content
 */
export type FindingSource = (
  skill: CatalogSkill, listing: FileList, mainFile: FileContent
) => Promise<readonly Finding[]>

/** What an entry of the catalog has besides the skill's content. */
export interface EntryVerdicts extends JudgedEntry {
  readonly tokens: TokenEstimate
  /** Only for targets that were chosen. */
  readonly targets?: readonly TargetVerdict[]
}

/** What all APIs validate with: made once, with what the clients of other APIs say. */
export type Judging = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/** @param sources further clients; those of the well-known indexes are asked in any case */
export function createJudge (sources: readonly FindingSource[]): Judging {
  const known = new WeakMap<CatalogSkill, Known>()
  const enter = pLimit(1)
  return async (state, targets) => {
    const { skill, manifest, fileFindings } = state
    let of = known.get(skill)
    if (of === undefined || of.manifest !== manifest || of.fileFindings !== fileFindings) {
      const subject = await subjectOf(state, sources)
      // A page of the catalog asks for many at the same time: one after the other, others are answered in between.
      of = await enter(async () => {
        await yieldIfNeeded()
        return { manifest, fileFindings, judged: judgeFindings(subject), tokens: estimateTokens(subject) }
      })
      known.set(skill, of)
    }
    const { targets: verdicts, findings } = verdictsOn(of.judged, targets)
    return { tokens: of.tokens, ...targets !== undefined && { targets: verdicts }, findings }
  }
}

/** What is to be said of one state of a skill, whichever targets are chosen. */
interface Known extends Pick<EntryState, 'manifest' | 'fileFindings'> {
  readonly judged: readonly JudgedFinding[]
  readonly tokens: TokenEstimate
}

/** A skill with all that verdicts rest on, whether a catalog holds it or not. */
export async function subjectOf (
  { skill, manifest, mainFile, fileFindings }: EntryStateOf<FileList>, sources: readonly FindingSource[]
): Promise<Subject> {
  const ofClients = manifest === undefined || mainFile === undefined
    ? []
    : [
        ...await Promise.all(sources.map((find) => find(skill, manifest, mainFile))),
        wellKnownFindings(skill, manifest, mainFile.utf8)
      ]
  const otherFindings = [...fileFindings, ...ofClients.flat()]
  return { skill, mainFile: mainFile?.bytes, files: manifest?.files, otherFindings }
}

/** A state of which the files need not have been read. */
type EntryStateOf<Listing> = Omit<EntryState, 'manifest'> & { readonly manifest: Listing | undefined }
