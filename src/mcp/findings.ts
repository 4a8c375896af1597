import type { FindingSource } from '../verdicts/entry.ts'

/** Why a skill is not in `skills/list`, for the catalog. The first question loads the SDK. */
export const mcpFindings: FindingSource = async (skill, manifest, mainFile) => {
  const { checkEligibility } = await import('./methods/eligibility.ts')
  return (await checkEligibility(skill, manifest, mainFile)).findings
}
