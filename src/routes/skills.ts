import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ZIP_MEDIA_TYPE } from '../archive/zip-writer.ts'
import { mediaType } from '../core/read/media-type.ts'
import { SkillError } from '../core/shared/errors.ts'
import { readInSkill } from '../core/view.ts'
import type { SkillsOf } from '../http/callers.ts'
import { addVary, withCatalogRevision, REVISION_HEADER, strongEtag } from '../http/headers.ts'
import { accepts, prefers } from '../http/request/accept.ts'
import { viewAtRevision } from '../http/revision.ts'
import { answerArchive, answerContent, answerFile } from '../http/send/file.ts'
import { keptJson } from '../http/send/json.ts'
import { answer, bytesAnswers, DOCUMENT_EXAMPLE, json, text } from '../openapi/responses.ts'
import {
  RevisionQuerySchema, SkillArchiveQuerySchema, SkillDocumentSchema, SkillFileParamsSchema, SkillFileQuerySchema,
  SkillFileSchema, SkillListSchema, SkillManifestSchema, SkillNameParamsSchema
} from '../schemas/skills.ts'
import { exampleOf, reference } from '../schemas/typebox.ts'
import { getSkill } from '../tools/reader/get-skill.ts'
import { listSkills } from '../tools/reader/list-skills.ts'
import { readFileInSkill } from '../tools/reader/read-file-in-skill.ts'

const FILE_EXAMPLE = 'def add(a, b):\n    return a + b\n'

/** Representations of a main file; the first is the default. */
const DOCUMENT_TYPES = ['application/json', 'text/markdown', 'text/plain'] as const

/** Version of the archive format, a part of its ETag: change it whenever archives are written differently. */
const ARCHIVE_FORMAT = 'zip1'

/** Headers of answers that depend on `Accept` and `revision`. */
const NEGOTIATED = ['skill-revision', 'vary'] as const

/** A file that is JSON has the media type of the JSON representation: the schema allows both. */
const JSON_FORMS = text('application/json', exampleOf(SkillFileSchema), {
  anyOf: [
    reference(SkillFileSchema), { title: 'A JSON file', description: 'The bytes of a file that is JSON itself' }
  ]
})

/** Stands for a file's own media type in the negotiation with its JSON representation. */
const ANY_BYTES = 'application/octet-stream'

/** Serves lists, main files, manifests, files and archives of skills. */
export const skillRoutes: FastifyPluginAsyncTypebox<{ readonly skillsOf: SkillsOf }> = async (app, { skillsOf }) => {
  app.get('/skills', {
    config: { reads: { event: 'skill.list', api: 'rest' } },
    schema: {
      operationId: 'listSkills',
      summary: 'List all skills',
      description: 'Names of all skills from every root, sorted by code point.',
      tags: ['skills'],
      response: { 200: answer('The names', json(SkillListSchema), 'catalog-revision') }
    }
  }, async (request, reply) => {
    const skills = skillsOf(request)
    const { result } = await withCatalogRevision(reply, skills.feed, () => listSkills.run({}, skills))
    return keptJson(reply, result)
  })

  app.get('/skills/:name', {
    config: { reads: { event: 'skill.read', api: 'rest' } },
    schema: {
      operationId: 'getSkill',
      summary: 'Read the main file of a skill',
      description: 'The whole SKILL.md, verbatim: inside JSON, or as its bytes with `Accept: text/markdown` or ' +
        '`text/plain`.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: RevisionQuerySchema,
      response: bytesAnswers(
        ['text/markdown', 'text/plain'], DOCUMENT_EXAMPLE, 'The document', json(SkillDocumentSchema), ...NEGOTIATED
      )
    }
  }, async (request, reply) => {
    const { name } = request.params
    const skills = viewAtRevision(request, skillsOf(request))
    addVary(reply, 'Accept')
    const type = prefers(request.headers.accept, DOCUMENT_TYPES)
    if (type === 'application/json') return keptJson(reply, (await getSkill.run({ skill_name: name }, skills)).result)
    const content = await skills.read(name, (skill) => skill.mainFile('SKILL.MD'))
    return answerContent(request, reply, content, type, type.slice('text/'.length))
  })

  app.get('/skills/:name/files', {
    config: { reads: { event: 'skill.manifest', api: 'rest' } },
    schema: {
      operationId: 'listSkillFiles',
      summary: 'List the files of a skill',
      description: 'Every file with its size, media type and digest, and the revision of the whole: equal for equal ' +
        'content.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: RevisionQuerySchema,
      response: { 200: answer('The manifest', json(SkillManifestSchema), 'skill-revision') }
    }
  }, async (request, reply) => {
    const skills = viewAtRevision(request, skillsOf(request))
    const manifest = await readInSkill(skills, request.params.name, (skill) => skill.manifest())
    reply.header(REVISION_HEADER, manifest.revision)
    return manifest
  })

  app.get('/skills/:name/files/*', {
    config: { reads: { event: 'skill.file_read', api: 'rest' } },
    schema: {
      operationId: 'readSkillFile',
      summary: 'Read a file of a skill',
      description: 'The bytes of any file, of any size, with `Range`. When `Accept` prefers `application/json`, its ' +
        'text inside JSON. A file without a JSON form goes out as bytes to a client that takes them too. One of more ' +
        'than 8 MiB has an `ETag` from its first whole download, or request with a condition, on.',
      tags: ['skills'],
      params: SkillFileParamsSchema,
      querystring: SkillFileQuerySchema,
      response: bytesAnswers(
        ['*/*'], FILE_EXAMPLE, 'The bytes, under the media type of the file', JSON_FORMS, ...NEGOTIATED
      )
    }
  }, async (request, reply) => {
    const { name, '*': path } = request.params
    const { accept } = request.headers
    const type = mediaType(path)
    const skills = viewAtRevision(request, skillsOf(request))
    const bytes = async () =>
      answerFile(request, reply, await readInSkill(skills, name, (skill) => skill.open(path)), path)
    addVary(reply, 'Accept')
    if (prefers(accept, [ANY_BYTES, type, 'application/json']) !== 'application/json') return await bytes()
    if (request.query.encoding === 'base64') {
      const content = (await readInSkill(skills, name, (skill) => skill.file(path))).bytes
      return {
        success: true,
        skill_name: name,
        file_path: path,
        content: content.toString('base64'),
        size_bytes: content.length,
        encoding: 'base64'
      }
    }
    try {
      return (await readFileInSkill.run({ skill_name: name, file_path: path }, skills)).result
    } catch (error) {
      if (hasNoText(error) && admitsBytes(accept, type)) return await bytes()
      throw error
    }
  })

  app.get('/skills/:name/archive.zip', {
    config: { reads: { event: 'skill.archive', api: 'rest' }, load: 'costly' },
    schema: {
      operationId: 'getSkillArchive',
      summary: 'Read a whole skill as a ZIP archive',
      description: 'Every file of the manifest, the main file at the root. Not compressed, and without times and ' +
        'permissions of the files: the same content is the same bytes on every replica.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: SkillArchiveQuerySchema,
      response: bytesAnswers([ZIP_MEDIA_TYPE], 'PK', 'The archive')
    }
  }, async (request, reply) => {
    const { name } = request.params
    const { wrap = false } = request.query
    const skills = viewAtRevision(request, skillsOf(request))
    const archive = await readInSkill(skills, name, (skill) =>
      skill.archive(wrap ? (path) => `${name}/${path}` : undefined))
    reply.header(REVISION_HEADER, archive.revision)
    const etag = strongEtag(archive.revision, wrap ? `${ARCHIVE_FORMAT}wrap` : ARCHIVE_FORMAT)
    return answerArchive(request, reply, archive, name, etag)
  })
}

/** Whether a client that prefers JSON takes the bytes too, as axios and Angular do. */
function admitsBytes (accept: string | undefined, type: string): boolean {
  return accept !== undefined && accept !== 'application/json' && accepts(accept, type)
}

/** Whether a file has no JSON form, since it is not text or too large. */
function hasNoText (error: unknown): boolean {
  return error instanceof SkillError && (error.code === 'file_not_text' || error.code === 'file_too_large')
}
