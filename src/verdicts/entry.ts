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

/** Findings, token estimate, trust report and verdicts in an entry of the catalog. */
export interface EntryVerdicts extends ValidatedEntry {
  readonly tokens: TokenEstimate
  /** Report of the trust policy; absent without a lock and a trust file. */
  readonly trust?: TrustReport
  /** Verdicts of the chosen targets; absent if none was chosen. */
  readonly targets?: readonly TargetVerdict[]
}

type OriginOf = (state: SkillState) => Promise<{ readonly report: TrustReport, readonly findings: readonly Finding[] }>

/** Validates an entry, for all APIs. */
export type Validator = (state: EntryState, targets?: readonly TargetName[]) => Promise<EntryVerdicts>

/** @param originOf returns the report of a lock and a trust file */
export function createValidator (originOf?: OriginOf): Validator {
  // A page of the catalog validates many skills; one at a time, other requests are answered in between.
  const limitValidations = pLimit(1)
  const validate = async (state: EntryState) => {
    const subject = await subjectOf(state)
    return await limitValidations(async () => {
      await yieldIfNeeded()
      const [validated, tokens] = [validateFindings(subject), estimateTokens(subject)]
      return { validated, tokens, untargeted: { tokens, findings: verdictsOn(validated).findings } }
    })
  }
  /** Results by an object that stays the same while no file of the skill changes. */
  const known = new WeakMap<object, ReturnType<typeof validate>>()
  return async (state, targets) => {
    const key = state.manifest ?? state.fileFindings
    // Which skills of its name a skill shadows depends on the caller, so such findings are not kept.
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

/** State whose files may not have been read. */
type ReadState = Omit<EntryState, 'manifest'> & { readonly manifest: FileList | undefined }

/** Collects what verdicts rest on, for a skill of a catalog or one that was sent. */
export async function subjectOf ({ skill, manifest, mainFile, fileFindings }: ReadState): Promise<Subject> {
  const otherFindings = [...fileFindings]
  if (manifest !== undefined && mainFile !== undefined) {
    // This loads the SDK of MCP, which decides for its clients.
    const { checkEligibility } = await import('./rules/mcp-list.ts')
    const { findings } = await checkEligibility(skill, manifest, mainFile)
    const reasons = findings.filter((found) => !skill.findings.includes(found))
    otherFindings.push(...reasons, ...wellKnownFindings(skill, manifest, mainFile.utf8))
  }
  return { skill, mainFile: mainFile?.bytes, files: manifest?.files, otherFindings }
}
