import pLimit from 'p-limit'
import type { EntryState, ValidatedEntry } from '../listing/entry.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { yieldIfNeeded } from '../core/shared/async.ts'
import type { TrustReport } from '../schemas/trust.ts'
import type { FileList, Finding } from '../core/shared/skill.ts'
import { wellKnownFindings } from './rules/discovery-index.ts'
import { validateFindings, type TargetVerdict, verdictsOn } from './client-verdicts.ts'
import type { Subject } from './subject.ts'
import type { TargetName } from './targets.ts'
import { estimateTokens, type TokenEstimate } from './tokens.ts'

/** What an entry of the catalog has besides the skill's content. */
export interface EntryVerdicts extends ValidatedEntry {
  readonly tokens: TokenEstimate
  /** Where the skill comes from; absent without a lock and a trust file. */
  readonly trust?: TrustReport
  /** Only for targets that were chosen. */
  readonly targets?: readonly TargetVerdict[]
}

type OriginOf = (state: SkillState) => Promise<{ readonly report: TrustReport, readonly findings: readonly Finding[] }>

/** Validates an entry, for all APIs. */
export type Validator = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/** @param originOf what a lock and a trust file say of a skill */
export function createValidator (originOf?: OriginOf): Validator {
  // A page of the catalog asks for many at the same time: one after the other, others are answered in between.
  const limitValidations = pLimit(1)
  const validate = async (state: EntryState) => {
    const subject = await subjectOf(state)
    return await limitValidations(async () => {
      await yieldIfNeeded()
      const [validated, tokens] = [validateFindings(subject), estimateTokens(subject)]
      return { validated, tokens, untargeted: { tokens, findings: verdictsOn(validated).findings } }
    })
  }
  /** By what is the same while no file of a skill changes. */
  const known = new WeakMap<object, ReturnType<typeof validate>>()
  return async (state, targets) => {
    const key = state.manifest ?? state.fileFindings
    // Which skills of its name a skill hides depends on the caller: such findings are not kept.
    const isForAll = state.skill.findings.every(({ code }) => code !== 'shadowed')
    const made = (isForAll ? known.get(key) : undefined) ?? validate(state)
    if (isForAll) known.set(key, made)
    const { validated, tokens, untargeted } = await made
    const origin = state.state && await originOf?.(state.state)
    if (targets === undefined && origin === undefined) return untargeted
    const { targets: verdicts, findings } = verdictsOn(validated, targets)
    return {
      tokens,
      ...targets !== undefined && { targets: verdicts },
      findings: [...findings, ...origin?.findings ?? []],
      ...origin && { trust: origin.report }
    }
  }
}

/** A state of which the files need not have been read. */
type ReadState = Omit<EntryState, 'manifest'> & { readonly manifest: FileList | undefined }

/** Collects what verdicts rest on, for a skill of a catalog or one that was sent. */
export async function subjectOf ({ skill, manifest, mainFile, fileFindings }: ReadState): Promise<Subject> {
  const otherFindings = [...fileFindings]
  if (manifest !== undefined && mainFile !== undefined) {
    // Loads the SDK of MCP, which decides for its clients.
    const { checkEligibility } = await import('./rules/mcp-list.ts')
    const { findings } = await checkEligibility(skill, manifest, mainFile)
    const reasons = findings.filter((found) => !skill.findings.includes(found))
    otherFindings.push(...reasons, ...wellKnownFindings(skill, manifest, mainFile.utf8))
  }
  return { skill, mainFile: mainFile?.bytes, files: manifest?.files, otherFindings }
}
