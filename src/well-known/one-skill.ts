import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { PerSkills, SkillsOf } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import { answerFile } from '../http/send/file.ts'
import { answerRendered } from '../http/send/json.ts'
import { DOCUMENT_EXAMPLE } from '../openapi/examples.ts'
import { ARTIFACT_PROBLEMS, MAIN_FILE_PROBLEMS, READ_PROBLEMS, SKILL_PROBLEMS } from '../openapi/problem-sets.ts'
import { bytesAnswers, jsonAnswer } from '../openapi/responses.ts'
import {
  DiscoveryIndexSchema, LegacyDiscoveryIndexSchema, SkillIndexParamsSchema, SkillLegacyFileParamsSchema
} from '../schemas/well-known.ts'
import type { Discovery } from './discovery.ts'

interface OneSkillOptions {
  readonly skillsOf: SkillsOf
  readonly discoveries: PerSkills<Discovery>
}

/** From the index of a skill to the artifacts that every index names. */
const ARTIFACTS = '../../../../.well-known/agent-skills/'

const INDEX_PROBLEMS = [...SKILL_PROBLEMS, ...MAIN_FILE_PROBLEMS, ...READ_PROBLEMS]

const INDEXES = [
  {
    path: '/skills/:name/.well-known/agent-skills/index.json',
    version: '0.2.0',
    operationId: 'getSkillDiscoveryIndex',
    summary: 'The index of one skill',
    answer: jsonAnswer(DiscoveryIndexSchema, 'The index')
  },
  {
    path: '/skills/:name/.well-known/skills/index.json',
    version: '0.1.0',
    operationId: 'getSkillLegacyDiscoveryIndex',
    summary: 'The index of one skill, with its files',
    answer: jsonAnswer(LegacyDiscoveryIndexSchema, 'The index')
  }
] as const

/** Discovery below the address of one skill: clients that are given it install this skill alone. */
export const oneSkill: FastifyPluginAsyncTypebox<OneSkillOptions> = async function oneSkill (
  app, { skillsOf, discoveries }
) {
  for (const { path, version, operationId, summary, answer } of INDEXES) {
    app.get(path, {
      config: { reads: { event: 'discovery.index', door: 'well-known' } },
      schema: {
        operationId,
        summary,
        description: `Version ${version} of skill discovery for clients that have the address of a skill. The list ` +
          'is empty if these clients do not take the skill.',
        tags: ['discovery'],
        params: SkillIndexParamsSchema,
        response: { 200: answer },
        problems: INDEX_PROBLEMS
      }
    }, async (request, reply) => {
      const index = (await discoveries.of(skillsOf(request)).indexesOf(request.params.name, ARTIFACTS))[version]
      return answerRendered(reply, index, () => JSON.stringify(index))
    })
  }

  app.get('/skills/:name/.well-known/skills/:skill/*', {
    config: { reads: { event: 'skill.file_read', door: 'well-known' } },
    schema: {
      operationId: 'getSkillLegacyDiscoveryFile',
      summary: 'A file that the index of one skill lists',
      description: 'The bytes of a file of the skill in its index 0.1.0.',
      tags: ['discovery'],
      params: SkillLegacyFileParamsSchema,
      bytes: bytesAnswers(['*/*'], DOCUMENT_EXAMPLE, 'The bytes, under the media type of the file'),
      problems: [...ARTIFACT_PROBLEMS, 'invalid_skill_name']
    }
  }, async (request, reply) => {
    const { name, skill, '*': file } = request.params
    const skills = skillsOf(request)
    if (name !== skill || !await discoveries.of(skills)
      .listsFile(name, file)) throw new HttpProblem('artifact_not_found')
    // `SKILL.md` is the main file in any casing.
    return answerFile(request, reply, await skills.openFile(name, file), file)
  })
}
