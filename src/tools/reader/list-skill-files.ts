import { Type } from '@sinclair/typebox'
import { readInSkill } from '../../core/view.ts'
import { ONE_SKILL, stringArgument } from '../arguments.ts'
import { ErrorResultSchema, failWithError, type Tool, ToolOutcome } from '../tool.ts'

const ResultSchema = Type.Object({
  skill_name: Type.String(),
  files: Type.Array(
    Type.Object({ path: Type.String(), size_bytes: Type.Integer({ minimum: 0 }), media_type: Type.String() })
  )
}, { title: 'list_skill_files' })

/** Tool `list_skill_files`: returns the manifest without digests, or `{"error"}`. */
export const listSkillFiles: Tool = {
  name: 'list_skill_files',
  toolset: 'explore',
  description: "List all files within a skill's folder, including those in subfolders. Returns paths relative to " +
    'the skill folder, with sizes in bytes and media types, as a JSON array.',
  purpose: 'names the files of one',
  parameters: ONE_SKILL,
  skillArgument: 'skill_name',
  reads: { event: 'skill.manifest' },
  resultSchema: ResultSchema,
  failureSchema: ErrorResultSchema,
  example: {
    args: { skill_name: 'calculator' },
    outcome: new ToolOutcome({
      skill_name: 'calculator', files: [{ path: 'SKILL.md', size_bytes: 620, media_type: 'text/markdown' }]
    })
  },

  async run (args, skills) {
    const name = stringArgument(args, 'skill_name', ONE_SKILL)
    const manifest = await readInSkill(skills, name, (skill) => skill.manifest())
    return new ToolOutcome({
      skill_name: manifest.skill_name,
      files: manifest.files.map(({ digest: _, ...file }) => file)
    })
  },

  fail: failWithError
}
