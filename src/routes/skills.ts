import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import type { FileContent } from '../core/file-content.ts'
import type { Manifest } from '../core/manifest.ts'
import { mediaType } from '../core/media-type.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { prefers } from '../plugins/accept.ts'
import { strongEtag } from '../plugins/conditional.ts'
import { binary, json, jsonOr, notModified, partial, problems } from '../schemas/responses.ts'
import {
  SkillDocumentSchema, SkillFileParamsSchema, SkillFileQuerySchema, SkillFileSchema, SkillListSchema, SkillManifestSchema,
  SkillNameParamsSchema
} from '../schemas/skills.ts'
import type { Tool } from '../tools/tool.ts'
import { sendContent, sendFile } from './file-answer.ts'
import { JSON_MEDIA_TYPE, sendOutcome } from './outcome.ts'

export interface SkillRoutesOptions {
  readonly skills: SkillManager
  /** The handlers that the routes share with the tool calls (K31). */
  readonly tools: { readonly listSkills: Tool, readonly getSkill: Tool, readonly readFileInSkill: Tool }
}

/** Representations of a document, the default first (K42). */
const DOCUMENT_TYPES = ['application/json', 'text/markdown', 'text/plain'] as const

/** Stands for a file's own media type when its JSON form is weighed against it (K44). */
const ANY_BYTES = 'application/octet-stream'

const manifests = new WeakMap<Manifest, Buffer>()

/** K42–K44: list, document, manifest and files of skills. */
export const skillRoutes: FastifyPluginAsyncTypebox<SkillRoutesOptions> = async function skillRoutes (app, { skills, tools }) {
  app.get('/skills', {
    schema: {
      operationId: 'listSkills',
      summary: 'List all skills',
      description: 'Names of all skills from every root, sorted by code point.',
      tags: ['skills'],
      response: { 200: json(SkillListSchema, 'The names'), 304: notModified(), ...problems(400, 403, 503) }
    }
  }, async (_request, reply) => sendOutcome(reply, await tools.listSkills.run({})))

  app.get('/skills/:name', {
    schema: {
      operationId: 'getSkill',
      summary: 'Read the main file of a skill',
      description: 'The whole SKILL.md, verbatim: inside JSON, or as its bytes with `Accept: text/markdown` or `text/plain`.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      response: {
        200: jsonOr(SkillDocumentSchema, 'The document', ['text/markdown', 'text/plain']),
        304: notModified(),
        ...problems(400, 403, 404, 413, 422, 500, 503)
      }
    }
  }, async (request, reply) => {
    const { name } = request.params
    reply.header('vary', 'Accept')
    const type = prefers(request.headers.accept, DOCUMENT_TYPES)
    if (type === 'application/json') return sendOutcome(reply, await tools.getSkill.run({ skill_name: name }))
    return sendContent(request, reply, await skills.readMainFile(name, 'SKILL.MD'), type)
  })

  app.get('/skills/:name/files', {
    schema: {
      operationId: 'listSkillFiles',
      summary: 'List the files of a skill',
      description: 'Every file with its size, media type and digest, and the revision of the whole: equal content has an equal revision everywhere.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      response: { 200: json(SkillManifestSchema, 'The manifest'), 304: notModified(), ...problems(400, 403, 404, 500, 503) }
    }
  }, async (request, reply) => {
    const manifest = await skills.manifest(request.params.name)
    let body = manifests.get(manifest)
    if (body === undefined) {
      body = Buffer.from(JSON.stringify(manifest))
      manifests.set(manifest, body)
    }
    return reply.header('content-type', JSON_MEDIA_TYPE).header('etag', strongEtag(manifest.revision)).send(body)
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
        200: binary('The bytes, under the media type of the file', SkillFileSchema),
        206: partial(),
        304: notModified(),
        ...problems(400, 403, 404, 413, 416, 422, 500, 503)
      }
    }
  }, async (request, reply) => {
    const { name, '*': path } = request.params
    const type = mediaType(path)
    reply.header('vary', 'Accept')
    if (prefers(request.headers.accept, [ANY_BYTES, type, 'application/json']) !== 'application/json') {
      return await sendFile(request, reply, await skills.openFile(name, path), type)
    }
    if (request.query.encoding === 'base64') return sendBase64(reply, name, path, await skills.readFile(name, path))
    return sendOutcome(reply, await tools.readFileInSkill.run({ skill_name: name, file_path: path }))
  })
}

/** `read_file_in_skill`'s object for any file, its content as base64 (K44). */
function sendBase64 (reply: FastifyReply, name: string, path: string, { bytes, digest }: FileContent): FastifyReply {
  const body = JSON.stringify({
    success: true,
    skill_name: name,
    file_path: path,
    content: bytes.toString('base64'),
    size_bytes: bytes.length,
    encoding: 'base64'
  })
  return reply.header('content-type', JSON_MEDIA_TYPE).header('etag', strongEtag(digest, 'base64')).send(Buffer.from(body))
}
