import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FileContent } from '../core/files/file-content.ts'
import { mediaType } from '../core/content/media-type.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { prefers } from '../http/accept.ts'
import { strongEtag } from '../http/etag.ts'
import { binary, json, jsonOr, notModified, partial, problems, withRevision } from '../openapi/responses.ts'
import {
  SkillDocumentSchema, SkillFileParamsSchema, SkillFileQuerySchema, SkillFileSchema, SkillListSchema, SkillManifestSchema, SkillQuerySchema,
  SkillNameParamsSchema
} from '../schemas/skills.ts'
import type { Tool } from '../tools/tool.ts'
import { sendContent, sendFile } from '../http/send-file.ts'
import { answer, JSON_MEDIA_TYPE, renderOnce, sendOutcome, sendRendered } from '../http/send-json.ts'
import { PIN_PROBLEMS, settleRevision, stampRevision } from '../http/revision.ts'

export interface SkillRoutesOptions {
  readonly skills: SkillManager
  /** The handlers that the routes share with the tool calls. */
  readonly tools: { readonly listSkills: Tool, readonly getSkill: Tool, readonly readFileInSkill: Tool }
}

/** Representations of a document, the default first. */
const DOCUMENT_TYPES = ['application/json', 'text/markdown', 'text/plain'] as const

/** Stands for a file's own media type when its JSON form is weighed against it. */
const ANY_BYTES = 'application/octet-stream'

/** For the document: the beginning of a main file and of a script. */
const EXAMPLE_DOCUMENT = '---\nname: calculator\ndescription: Basic arithmetic\n---\n# Calculator Skill\n'
const EXAMPLE_FILE = 'def add(a, b):\n    return a + b\n'

/** What a request that names a skill can meet. */
export const SKILL_PROBLEMS = ['bad_url', 'uri_too_long', 'invalid_skill_name', 'skill_not_found', 'skills_folder_not_found', 'skills_folder_permission_denied'] as const

/** List, document, manifest and files of skills. */
export const skillRoutes: FastifyPluginAsyncTypebox<SkillRoutesOptions> = async function skillRoutes (app, { skills, tools }) {
  const preHandler = settleRevision(skills)

  app.get('/skills', {
    schema: {
      operationId: 'listSkills',
      summary: 'List all skills',
      description: 'Names of all skills from every root, sorted by code point.',
      tags: ['skills'],
      response: { 200: json(SkillListSchema, 'The names'), 304: notModified(), ...problems('skills_folder_not_found', 'skills_folder_permission_denied') }
    }
  }, (request, reply) => answer(tools.listSkills.run({}, skills), (outcome) => sendOutcome(request, reply, outcome)))

  app.get('/skills/:name', {
    schema: {
      operationId: 'getSkill',
      summary: 'Read the main file of a skill',
      description: 'The whole SKILL.md, verbatim: inside JSON, or as its bytes with `Accept: text/markdown` or `text/plain`.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: SkillQuerySchema,
      response: {
        200: jsonOr(SkillDocumentSchema, 'The document', ['text/markdown', 'text/plain'], EXAMPLE_DOCUMENT),
        206: partial(EXAMPLE_DOCUMENT.slice(0, 14)),
        304: notModified(),
        ...problems(...SKILL_PROBLEMS, ...PIN_PROBLEMS, 'main_file_permission_denied', 'main_file_not_found', 'main_file_too_large',
          'range_not_satisfiable', 'main_file_not_utf8', 'main_file_unreadable')
      }
    },
    preHandler
  }, (request, reply) => {
    const { name } = request.params
    reply.header('vary', 'Accept')
    const type = prefers(request.headers.accept, DOCUMENT_TYPES)
    if (type === 'application/json') return answer(tools.getSkill.run({ skill_name: name }, skills), (outcome) => sendOutcome(request, reply, outcome))
    return answer(skills.readMainFile(name, 'SKILL.MD'), (content) => sendContent(request, reply, content, type, type.slice('text/'.length)))
  })

  app.get('/skills/:name/files', {
    schema: {
      operationId: 'listSkillFiles',
      summary: 'List the files of a skill',
      description: 'Every file with its size, media type and digest, and the revision of the whole: equal content has an equal revision everywhere.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: SkillQuerySchema,
      response: {
        200: withRevision(json(SkillManifestSchema, 'The manifest')),
        304: notModified(),
        ...problems(...SKILL_PROBLEMS, ...PIN_PROBLEMS, 'file_permission_denied', 'file_io_error')
      }
    }
  }, async (request, reply) => {
    const manifest = await skills.manifest(request.params.name)
    const render = () => JSON.stringify(manifest)
    stampRevision(request, reply, manifest.revision, renderOnce(manifest, render).etag)
    return sendRendered(reply, manifest, render)
  })

  app.get('/skills/:name/files/*', {
    schema: {
      operationId: 'readSkillFile',
      summary: 'Read a file of a skill',
      description: 'The bytes of any file, of any size, with `Range`; or, when `Accept` prefers `application/json`, its text inside JSON.',
      tags: ['skills'],
      params: SkillFileParamsSchema,
      querystring: SkillFileQuerySchema,
      response: {
        200: binary(SkillFileSchema, 'The bytes, under the media type of the file', EXAMPLE_FILE),
        206: partial(EXAMPLE_FILE.slice(0, 14)),
        304: notModified(),
        ...problems(...SKILL_PROBLEMS, ...PIN_PROBLEMS, 'invalid_file_path', 'path_traversal', 'file_permission_denied', 'file_not_found',
          'file_is_directory', 'file_not_regular', 'file_too_large', 'range_not_satisfiable', 'file_not_text', 'file_io_error')
      }
    },
    preHandler
  }, (request, reply) => {
    const { name, '*': path } = request.params
    const type = mediaType(path)
    reply.header('vary', 'Accept')
    if (prefers(request.headers.accept, [ANY_BYTES, type, 'application/json']) !== 'application/json') {
      return answer(skills.openFile(name, path), (file) => sendFile(request, reply, file, type, path))
    }
    if (request.query.encoding === 'base64') return answer(skills.readFile(name, path), (content) => sendBase64(request, reply, request.params, content))
    return answer(tools.readFileInSkill.run({ skill_name: name, file_path: path }, skills), (outcome) => sendOutcome(request, reply, outcome))
  })
}

/** `read_file_in_skill`'s object for any file, its content as base64. */
function sendBase64 (
  request: FastifyRequest, reply: FastifyReply, { name, '*': path }: { readonly name: string, readonly '*': string }, { bytes, digest, revision }: FileContent
): FastifyReply {
  const body = JSON.stringify({
    success: true,
    skill_name: name,
    file_path: path,
    content: bytes.toString('base64'),
    size_bytes: bytes.length,
    encoding: 'base64'
  })
  const etag = strongEtag(digest, 'base64')
  stampRevision(request, reply, revision, etag)
  return reply.header('content-type', JSON_MEDIA_TYPE).header('etag', etag).send(Buffer.from(body))
}
