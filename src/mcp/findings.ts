import type { FindingSource } from '../verdicts/entry.ts'
import { Lazy } from '../core/ground/async.ts'
import { loadSchemas } from './load-schemas.ts'
import type * as eligibility from './methods/eligibility.ts'

const judge = new Lazy<typeof eligibility>(async () => {
  await loadSchemas()
  return await import('./methods/eligibility.ts')
})

/** Why a skill is not in `skills/list`, for the catalog. The first question loads the SDK, as the first MCP request does. */
export const mcpFindings: FindingSource = async (skill, manifest, mainFile) => {
  const { checkEligibility } = await judge.get()
  return (await checkEligibility(skill, manifest, mainFile)).findings
}
