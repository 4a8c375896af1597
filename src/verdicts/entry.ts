import { wellKnownFindings } from '../core/listing/discovery.ts'
import type { FileContent } from '../core/read/file-content.ts'
import { createQueue, inSlices } from '../core/shared/async.ts'
import type { CatalogSkill, FileList, Finding, Manifest } from '../core/shared/skill.ts'
import type { EntryState, JudgedEntry } from '../core/listing/entry.ts'
import { type JudgedFinding, judgeFindings, type TargetVerdict, verdictsOn } from './judge.ts'
import type { Subject } from './subject.ts'
import type { TargetName } from './targets.ts'
import { estimateTokens, type TokenEstimate } from './tokens.ts'

/**
 * Why clients of a door do not take a skill. Must not throw or reject.
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

/** The one judge of all doors: made once, with what the clients of other doors say. */
export type Judging = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/**
 * @param sources clients of doors that verdicts know nothing of; those of the well-known indexes are asked in any case
 */
export function createJudge (sources: readonly FindingSource[]): Judging {
  // By manifest where there is one. A page of large main files leaves no room for their contents, and each would be
  // judged for each page.
  const known = new WeakMap<Manifest | FileContent, Known>()
  const enter = createQueue()
  return async (state, targets) => {
    const key = state.manifest ?? state.mainFile
    const before = key && known.get(key)
    if (before !== undefined && isOf(before, state)) {
      return targets === undefined ? before.verdicts : entryVerdicts(before.judged, targets)
    }
    const subject = await subjectOf(state, sources)
    // One after the other: a page of the catalog asks for many at the same time.
    const judged = await enter(() => judgeInSlices(subject))
    const { skill, mainFile, fileFindings } = state
    if (key !== undefined) {
      known.set(key, { skill, digest: mainFile?.digest, fileFindings, judged, verdicts: entryVerdicts(judged) })
    }
    return entryVerdicts(judged, targets)
  }
}

/** A judgement, and the state that it is of. Without the main file, which may leave the memory for contents. */
interface Known extends Pick<EntryState, 'skill' | 'fileFindings'> {
  /** Of the main file. */
  readonly digest: string | undefined
  readonly judged: Judgement
  readonly verdicts: EntryVerdicts
}

function entryVerdicts ({ findings: judged, tokens }: Judgement, chosen?: readonly TargetName[]): EntryVerdicts {
  const { targets, findings } = verdictsOn(judged, chosen)
  return { tokens, ...chosen !== undefined && { targets }, findings }
}

/** What is to be said of one state of a skill, whichever targets are chosen. */
interface Judgement {
  readonly findings: readonly JudgedFinding[]
  readonly tokens: TokenEstimate
}

/** A SKILL.md of 1 MiB takes up to 100 ms, in which others are answered as well. */
export async function judgeInSlices (subject: Subject): Promise<Judgement> {
  return { findings: await inSlices(judgeFindings(subject)), tokens: await inSlices(estimateTokens(subject)) }
}

/** The values of one state are the same objects as long as nothing changes. */
function isOf (known: Known, { skill, mainFile, fileFindings }: EntryState): boolean {
  return known.skill === skill && known.fileFindings === fileFindings && known.digest === mainFile?.digest
}

/** The same for a skill that no catalog holds, with the verdicts of the chosen targets or of the format. */
export async function subjectOf (
  { skill, manifest, mainFile, fileFindings }: EntryStateOf<FileList>, sources: readonly FindingSource[]
): Promise<Subject> {
  const ofClients = manifest === undefined || mainFile === undefined
    ? []
    : [...await Promise.all(sources.map((find) => find(skill, manifest, mainFile))), wellKnownFindings(
        skill, manifest, mainFile.utf8
      )]
  return {
    skill, mainFile: mainFile?.bytes, files: manifest?.files, otherFindings: [...fileFindings, ...ofClients.flat()]
  }
}

/** A state of which the files need not have been read. */
type EntryStateOf<Listing> = Omit<EntryState, 'manifest'> & { readonly manifest: Listing | undefined }
