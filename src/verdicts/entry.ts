import { wellKnownFindings } from '../core/clients/discovery.ts'
import type { FileContent } from '../core/files/file-content.ts'
import { createQueue, inSlices } from '../core/ground/async.ts'
import type { CatalogSkill, FileList, Finding } from '../core/ground/skill.ts'
import type { EntryState, JudgedEntry } from '../core/listing/entry.ts'
import { type JudgedFinding, judgeFindings, type TargetVerdict, verdictsOn } from './judge.ts'
import type { Subject } from './subject.ts'
import type { TargetName } from './targets.ts'
import { estimateTokens, type TokenEstimate } from './tokens.ts'

/**
 * Why clients of a door do not take a skill. Must not throw or reject.
 * @param mainFile its content
 */
export type FindingSource = (skill: CatalogSkill, listing: FileList, mainFile: FileContent) => Promise<readonly Finding[]>

/** What an entry of the catalog has beside the skill's content. */
export interface EntryVerdicts extends JudgedEntry {
  readonly tokens: TokenEstimate
  /** Only for targets that were chosen. */
  readonly targets?: readonly TargetVerdict[]
}

/** The one judge of all doors: made once, with what the clients of other doors say. */
export type Judging = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/** @param sources clients of doors that verdicts know nothing of; those of the well-known indexes are asked in any case */
export function createJudge (sources: readonly FindingSource[]): Judging {
  const known = new WeakMap<FileContent, { readonly state: EntryState, readonly judged: Judgement, readonly verdicts: EntryVerdicts }>()
  const enter = createQueue()
  return async (state, targets) => {
    const before = state.mainFile && known.get(state.mainFile)
    if (before !== undefined && isSame(before.state, state)) return targets === undefined ? before.verdicts : entryVerdicts(before.judged, targets)
    const subject = await subjectOf(state, sources)
    // One after the other: a page of the catalog asks for many at the same time.
    const judged = await enter(() => judgeInSlices(subject))
    if (state.mainFile !== undefined) known.set(state.mainFile, { state, judged, verdicts: entryVerdicts(judged) })
    return entryVerdicts(judged, targets)
  }
}

function entryVerdicts ({ findings: judged, tokens }: Judgement, chosen?: readonly TargetName[]): EntryVerdicts {
  const { targets, findings } = verdictsOn(judged, chosen)
  return { tokens, ...chosen !== undefined && { targets }, findings }
}

/** What is to be said of one state of a skill, whichever targets are chosen. */
export interface Judgement {
  readonly findings: readonly JudgedFinding[]
  readonly tokens: TokenEstimate
}

/** A SKILL.md of 1 MiB takes up to 100 ms, in which others are answered as well. */
export async function judgeInSlices (subject: Subject): Promise<Judgement> {
  return { findings: await inSlices(judgeFindings(subject)), tokens: await inSlices(estimateTokens(subject)) }
}

/** The values of one state are the same objects as long as nothing changes. */
function isSame (a: EntryState, b: EntryState): boolean {
  return a.skill === b.skill && a.manifest === b.manifest && a.fileFindings === b.fileFindings
}

/** The same for a skill that no catalog holds, with the verdicts of the chosen targets or of the format. */
export async function subjectOf ({ skill, manifest, mainFile, fileFindings }: EntryStateOf<FileList>, sources: readonly FindingSource[]): Promise<Subject> {
  const ofClients = manifest === undefined || mainFile === undefined
    ? []
    : [...await Promise.all(sources.map((find) => find(skill, manifest, mainFile))), wellKnownFindings(skill, manifest, mainFile.utf8)]
  return { skill, mainFile: mainFile?.bytes, files: manifest?.files, otherFindings: [...fileFindings, ...ofClients.flat()] }
}

/** A state of which the files need not have been read. */
export type EntryStateOf<Listing> = Omit<EntryState, 'manifest'> & { readonly manifest: Listing | undefined }
