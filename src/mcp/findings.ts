import type { FindingSource } from '../core/listing/entry.ts'

/** Why a skill is not in `skills/list`, for the catalog. The first question loads the SDK, as the first MCP request does. */
export const mcpFindings: FindingSource = async (skill, manifest, document) => {
  if (document === undefined) return []
  const { checkEligibility } = await import('./eligibility.ts')
  return (await checkEligibility(skill, manifest, document)).findings
}
