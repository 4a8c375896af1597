import type { FindingSource } from '../verdicts/entry.ts'
import { loadSchemas } from './load-schemas.ts'
import type * as eligibility from './methods/eligibility.ts'

let loading: Promise<typeof eligibility> | undefined

/** Why a skill is not in `skills/list`, for the catalog. The first question loads the SDK, as the first MCP request does. */
export const mcpFindings: FindingSource = async (skill, manifest, mainFile) => {
  const { checkEligibility } = await (loading ??= load())
  return (await checkEligibility(skill, manifest, mainFile)).findings
}

async function load (): Promise<typeof eligibility> {
  try {
    await loadSchemas()
    return await import('./methods/eligibility.ts')
  } catch (error) {
    // A later question may succeed: too many open files, for example, is a passing failure.
    loading = undefined
    throw error
  }
}
