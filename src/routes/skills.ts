import type { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import type { FileContent } from '../core/read/file-content.ts'
import { mediaType } from '../core/read/media-type.ts'
import { type Awaitable, whenThere } from '../core/shared/async.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillsOf } from '../http/callers.ts'
import { accepts, prefers } from '../http/request/accept.ts'
import { DOCUMENT_EXAMPLE, FILE_EXAMPLE } from '../openapi/examples.ts'
import { FILE_PROBLEMS, FOLDER_PROBLEMS, MAIN_FILE_PROBLEMS, READ_PROBLEMS, REVISION_PROBLEMS, SKILL_PROBLEMS } from '../openapi/problem-sets.ts'
import { bytesOrJsonAnswer, jsonAnswer, jsonOrTextAnswer, notModifiedAnswer, partialAnswer, problemAnswers, withCatalogRevision, withRevision } from '../openapi/responses.ts'
import {
  RevisionQuerySchema, SkillDocumentSchema, SkillFileParamsSchema, SkillFileQuerySchema, SkillFileSchema, SkillListSchema, SkillManifestSchema, SkillNameParamsSchema
} from '../schemas/skills.ts'
import type { Tool } from '../tools/tool.ts'
import { answerContent, answerFile } from '../http/send/file.ts'
import { answerJson, answerOutcome } from '../http/send/json.ts'
import { addVary, REVISION_HEADER, type RevisionsOf, setCatalogRevision } from '../http/headers.ts'
import { revisionCondition, type RevisionCondition } from '../http/revision.ts'

export interface SkillRoutesOptions {
  readonly skillsOf: SkillsOf
  readonly revisionsOf: RevisionsOf
  /** The handlers that the routes share with the tool calls. */
  readonly tools: { readonly listSkills: Tool, readonly getSkill: Tool, readonly readFileInSkill: Tool }
}

/** Representations of a document, the default first. */
const DOCUMENT_TYPES = ['application/json', 'text/markdown', 'text/plain'] as const

/** Stands for a file's own media type when its JSON form is weighed against it. */
const ANY_BYTES = 'application/octet-stream'

/** List, document, manifest and files of skills. */
export const skillRoutes: FastifyPluginAsyncTypebox<SkillRoutesOptions> = async function skillRoutes (app, { skillsOf, revisionsOf, tools }) {
  app.get('/skills', {
    config: { reads: { event: 'skill.list', door: 'rest' } },
    schema: {
      operationId: 'listSkills',
      summary: 'List all skills',
      description: 'Names of all skills from every root, sorted by code point.',
      tags: ['skills'],
      response: { 200: withCatalogRevision(jsonAnswer(SkillListSchema, 'The names')), 304: notModifiedAnswer(), ...problemAnswers(...FOLDER_PROBLEMS) }
    }
  }, async (request, reply) => {
    const outcome = await tools.listSkills.run({}, skillsOf(request))
    setCatalogRevision(reply, revisionsOf(request).revision)
    return answerJson(reply, outcome, () => outcome.json)
  })

  app.get('/skills/:name', {
    config: { reads: { event: 'skill.read', door: 'rest' } },
    schema: {
      operationId: 'getSkill',
      summary: 'Read the main file of a skill',
      description: 'The whole SKILL.md, verbatim: inside JSON, or as its bytes with `Accept: text/markdown` or `text/plain`.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: RevisionQuerySchema,
      response: {
        200: jsonOrTextAnswer(SkillDocumentSchema, 'The document', ['text/markdown', 'text/plain'], DOCUMENT_EXAMPLE),
        206: partialAnswer(DOCUMENT_EXAMPLE.slice(0, 14), ['text/markdown', 'text/plain']),
        304: notModifiedAnswer(),
        ...problemAnswers(...SKILL_PROBLEMS, ...REVISION_PROBLEMS, ...MAIN_FILE_PROBLEMS)
      }
    }
  }, (request, reply) => {
    const { name } = request.params
    const condition = revisionCondition(request, skillsOf(request))
    addVary(reply, 'Accept')
    const type = prefers(request.headers.accept, DOCUMENT_TYPES)
    return sendWhenThere(reply, type === 'application/json'
      ? whenThere(tools.getSkill.run({ skill_name: name }, condition.skills), (outcome) => answerOutcome(reply, outcome, condition))
      : whenThere(condition.skills.readMainFile(name, 'SKILL.MD'), (content) =>
        answerContent(request, reply, content, { mediaType: type, condition }, type.slice('text/'.length))))
  })

  app.get('/skills/:name/files', {
    config: { reads: { event: 'skill.manifest', door: 'rest' } },
    schema: {
      operationId: 'listSkillFiles',
      summary: 'List the files of a skill',
      description: 'Every file with its size, media type and digest, and the revision of the whole: equal content has an equal revision everywhere.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: RevisionQuerySchema,
      response: {
        200: withRevision(jsonAnswer(SkillManifestSchema, 'The manifest')),
        304: notModifiedAnswer(),
        ...problemAnswers(...SKILL_PROBLEMS, ...REVISION_PROBLEMS, ...READ_PROBLEMS)
      }
    }
  }, async (request, reply) => {
    const condition = revisionCondition(request, skillsOf(request))
    const manifest = await condition.skills.manifest(request.params.name)
    return answerJson(reply.header(REVISION_HEADER, manifest.revision), manifest, () => JSON.stringify(manifest), condition)
  })

  app.get('/skills/:name/files/*', {
    config: { reads: { event: 'skill.file_read', door: 'rest' } },
    schema: {
      operationId: 'readSkillFile',
      summary: 'Read a file of a skill',
      description: 'The bytes of any file, of any size, with `Range`. When `Accept` prefers `application/json`, its text inside JSON. A file without a JSON form goes out as bytes to a client that takes them too.',
      tags: ['skills'],
      params: SkillFileParamsSchema,
      querystring: SkillFileQuerySchema,
      response: {
        200: bytesOrJsonAnswer(SkillFileSchema, 'The bytes, under the media type of the file', FILE_EXAMPLE),
        206: partialAnswer(FILE_EXAMPLE.slice(0, 14)),
        304: notModifiedAnswer(),
        ...problemAnswers(...SKILL_PROBLEMS, ...REVISION_PROBLEMS, ...FILE_PROBLEMS)
      }
    }
  }, async (request, reply) => {
    const { name, '*': path } = request.params
    const type = mediaType(path)
    const condition = revisionCondition(request, skillsOf(request))
    const source = condition.skills
    addVary(reply, 'Accept')
    if (prefers(request.headers.accept, [ANY_BYTES, type, 'application/json']) !== 'application/json') {
      return answerFile(request, reply, await source.openFile(name, path), path, condition)
    }
    if (request.query.encoding === 'base64') return answerBase64(reply, request.params, await source.readFile(name, path), condition)
    const readText = () => tools.readFileInSkill.run({ skill_name: name, file_path: path }, source)
    if (!admitsBytes(request.headers.accept, type)) return answerOutcome(reply, await readText(), condition)
    return await orBytes(async () => answerOutcome(reply, await readText(), condition), async () =>
      answerFile(request, reply, await source.openFile(name, path), path, condition))
  })
}

/** The answer of a handler: a body that is there goes out without a promise. */
function sendWhenThere (reply: FastifyReply, body: Awaitable<Buffer>): Promise<Buffer> | undefined {
  if (body instanceof Promise) return body
  reply.send(body)
  return undefined
}

/** Whether a client that prefers JSON takes the bytes too, as axios and Angular do. */
function admitsBytes (accept: string | undefined, type: string): boolean {
  return accept !== undefined && accept !== 'application/json' && accepts(accept, type)
}

/** JSON, or the bytes of a file that has no JSON form: it is not text, or too large. */
async function orBytes (jsonForm: () => Promise<Buffer>, bytes: () => Promise<Buffer | Readable>): Promise<Buffer | Readable> {
  try {
    return await jsonForm()
  } catch (error) {
    if (error instanceof SkillError && (error.code === 'file_not_text' || error.code === 'file_too_large')) return await bytes()
    throw error
  }
}

/** `read_file_in_skill`'s object for any file, its content as base64. */
function answerBase64 (
  reply: FastifyReply, { name, '*': path }: { readonly name: string, readonly '*': string }, { bytes }: FileContent, condition: RevisionCondition
): Buffer {
  const value = { success: true, skill_name: name, file_path: path, content: bytes.toString('base64'), size_bytes: bytes.length, encoding: 'base64' }
  return answerJson(reply, value, () => JSON.stringify(value), condition)
}
