import type { FindingSource } from '../verdicts/entry.ts'
import { lazyCode } from '../core/files/load-code.ts'
import { loadSchemas } from './sdk/load-schemas.ts'
import type * as eligibility from './methods/eligibility.ts'

const judge = lazyCode<typeof eligibility>(async () => {
  await loadSchemas()
  return await import('./methods/eligibility.ts')
})

/** Why a skill is not in `skills/list`, for the catalog. The first question loads the SDK, as the first MCP request does. */
export const mcpFindings: FindingSource = async (skill, manifest, mainFile) => {
  const { checkEligibility } = await judge()
  return (await checkEligibility(skill, manifest, mainFile)).findings
}
