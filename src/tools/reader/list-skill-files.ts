import { Type } from '@sinclair/typebox'
import type { Manifest } from '../../core/shared/skill.ts'
import { stringArgument } from '../arguments.ts'
import { ErrorResultSchema, failWithError, jsonOutcome, SharedOutcomes } from '../outcomes.ts'
import type { Tool, ToolParameters } from '../tool.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: { skill_name: { type: 'string', description: 'Name of the skill (folder name)' } },
  required: ['skill_name']
}

const ResultSchema = Type.Object({
  skill_name: Type.String(),
  files: Type.Array(
    Type.Object({ path: Type.String(), size_bytes: Type.Integer({ minimum: 0 }), media_type: Type.String() })
  )
}, { title: 'list_skill_files' })

/** `list_skill_files`: the manifest without digests; failure `{"error"}`. */
export function createListSkillFilesTool (): Tool {
  const outcomes = new SharedOutcomes<Manifest, undefined>()
  return {
    name: 'list_skill_files',
    toolset: 'explore',
    description: "List all files within a skill's folder, including those in subfolders. Returns paths relative to " +
      'the skill folder, with sizes in bytes and media types, as a JSON array.',
    purpose: 'names the files of one',
    parameters,
    skillArgument: 'skill_name',
    reads: { event: 'skill.manifest' },
    resultSchema: ResultSchema,
    failureSchema: ErrorResultSchema,
    example: {
      args: { skill_name: 'calculator' },
      outcome: jsonOutcome({
        skill_name: 'calculator', files: [{ path: 'SKILL.md', size_bytes: 620, media_type: 'text/markdown' }]
      })
    },

    async run (args, skills) {
      const name = stringArgument(args, 'skill_name', parameters)
      const manifest = await skills.read(name, (skill) => skill.manifest())
      return outcomes.get(manifest, undefined, () => jsonOutcome({
        skill_name: manifest.skill_name,
        files: manifest.files.map(({ digest: _, ...file }) => file)
      }))
    },

    fail: failWithError
  }
}
