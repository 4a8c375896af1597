import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { SkillsOf } from '../http/callers.ts'
import { strongEtag } from '../http/etag.ts'
import { READ_PROBLEMS, REVISION_PROBLEMS, SKILL_PROBLEMS } from '../openapi/problem-sets.ts'
import { bytesAnswers } from '../openapi/responses.ts'
import { SkillArchiveQuerySchema, SkillNameParamsSchema } from '../schemas/skills.ts'
import { REVISION_HEADER } from '../http/headers.ts'
import { inAskedRevision } from '../http/revision.ts'
import { ZIP_MEDIA_TYPE } from '../archive/zip-writer.ts'
import { answerArchive } from '../http/send/file.ts'

interface ArchiveRoutesOptions {
  readonly skillsOf: SkillsOf
}

/** The version of the archive's format, part of its ETag: change it whenever archives are written differently. */
const FORMAT = 'zip1'

export const archiveRoutes: FastifyPluginAsyncTypebox<ArchiveRoutesOptions> = async (app, { skillsOf }) => {
  app.get('/skills/:name/archive.zip', {
    config: { reads: { event: 'skill.archive', door: 'rest' }, load: 'costly' },
    schema: {
      operationId: 'getSkillArchive',
      summary: 'Read a whole skill as a ZIP archive',
      description: 'Every file of the manifest, the main file at the root. Not compressed, and without times and ' +
        'permissions of the files: the same content is the same bytes on every replica.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: SkillArchiveQuerySchema,
      bytes: bytesAnswers([ZIP_MEDIA_TYPE], 'PK', 'The archive'),
      problems: [
        ...SKILL_PROBLEMS, ...REVISION_PROBLEMS, ...READ_PROBLEMS, 'archive_too_large', 'range_not_satisfiable'
      ]
    }
  }, async (request, reply) => {
    const { name } = request.params
    const { wrap = false } = request.query
    const skills = inAskedRevision(request, skillsOf(request))
    const archive = await skills.read(name, (skill) => skill.archive(wrap ? (path) => `${name}/${path}` : undefined))
    reply.header(REVISION_HEADER, archive.revision)
    const etag = strongEtag(archive.revision, wrap ? `${FORMAT}wrap` : FORMAT)
    return answerArchive(request, reply, archive, name, etag)
  })
}
