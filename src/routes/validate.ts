import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { HttpProblem } from '../http/problem.ts'
import { problemOfCoding } from '../plugins/json-body.ts'
import { MAX_VALIDATED_BYTES } from '../http/limits.ts'
import { jsonText } from '../http/send/json.ts'
import { resultAnswer } from '../openapi/responses.ts'
import { isSafeName } from '../core/shared/skill-name.ts'
import { quote } from '../core/shared/text.ts'
import { ValidateQuerySchema, ValidationSchema } from '../schemas/verdicts.ts'
import { verdictsOf } from '../verdicts/client-verdicts.ts'
import { parseTargets, TARGET_WORDS, type TargetName } from '../verdicts/targets.ts'
import { estimateTokens } from '../verdicts/tokens.ts'
import { ArchiveError, isZip } from '../archive/archive-names.ts'

const DOCUMENT_TYPES = ['text/markdown', 'text/plain']
const ARCHIVE_TYPES = ['application/zip', 'application/x-zip-compressed', 'application/octet-stream']

const WANTED = 'Send a SKILL.md as text/markdown, or a ZIP as application/zip'

const EXAMPLE = '---\nname: demo\ndescription: What it does, and when to use it\n---\n\n# Demo\n'

const BODY = {
  content: {
    'text/markdown': {
      schema: { type: 'string', description: 'A SKILL.md', 'x-examples': { skill: { value: EXAMPLE } } }
    },
    'application/zip': {
      schema: {
        type: 'string',
        description: 'A ZIP of the skill, with SKILL.md at its root or in its one folder',
        'x-examples': { skill: { value: 'PK\u0003\u0004' } }
      }
    }
  }
}

/** Validates a skill that a client sends, for editors and pipelines. Nothing is stored. */
export const validateRoute: FastifyPluginAsyncTypebox = async (app) => {
  // The JSON parser would refuse a body that is not JSON.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    [...DOCUMENT_TYPES, ...ARCHIVE_TYPES],
    { parseAs: 'buffer', bodyLimit: MAX_VALIDATED_BYTES },
    (request, body, next) => { next(problemOfCoding(request) ?? null, body) }
  )
  // Also for bodies without a content type.
  app.addContentTypeParser('*', (_request, _body, next) => { next(new HttpProblem('unsupported_media_type', WANTED)) })

  app.post('/validate', {
    bodyLimit: MAX_VALIDATED_BYTES,
    config: { reads: 'nothing', load: 'costly' },
    schema: {
      operationId: 'validateSkill',
      summary: 'Validate a skill that is sent',
      description: 'Takes one SKILL.md, or a ZIP of a skill, up to 10 MiB. Says what the format, validators, agents ' +
        'and uploads make of it. Nothing is kept. A verdict is always a 200.',
      tags: ['skills'],
      querystring: ValidateQuerySchema,
      body: BODY,
      response: { 200: resultAnswer(ValidationSchema, 'The verdicts') }
    }
  }, async ({ body, headers, query: { folder, target } }, reply) => {
    if (!Buffer.isBuffer(body)) throw new HttpProblem('unsupported_media_type', WANTED)
    if (folder !== undefined && !isSafeName(folder)) {
      throw new HttpProblem('bad_query', "Query parameter 'folder' is not the name of a skill")
    }
    const targets = readTargets(target)
    const isArchive = isZip(body) || /zip/.test(headers['content-type'] ?? '')
    const { subjectOfArchive, subjectOfMainFile } = await import('../verdicts/upload.ts')
    const read = isArchive ? subjectOfArchive : subjectOfMainFile
    const subject = await read(body, folder).catch((error: unknown) => {
      if (!(error instanceof ArchiveError)) throw error
      throw new HttpProblem('invalid_archive', error.message.charAt(0).toUpperCase() + error.message.slice(1))
    })
    const { name, valid } = subject.skill
    const tokens = estimateTokens(subject)
    return jsonText(reply, JSON.stringify({
      skill_name: name, revision: null, valid, tokens, ...verdictsOf(subject, targets)
    }))
  })
}

/**
 * Parses the names of targets in a query; returns undefined without a choice.
 * @throws HttpProblem `bad_query` for an unknown name
 */
export function readTargets (text: string | undefined): readonly TargetName[] | undefined {
  if (text === undefined) return undefined
  const targets = parseTargets(text)
  if (!('unknown' in targets)) return targets
  const allowed = TARGET_WORDS.join(', ')
  throw new HttpProblem('bad_query', `Query parameter 'target' has ${quote(targets.unknown)}, allowed: ${allowed}`)
}
