import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ZIP_MEDIA_TYPE } from '../archive/zip-writer.ts'
import type { SkillsOf } from '../http/callers.ts'
import type { View } from '../core/view.ts'
import { withCatalogRevision, REVISION_HEADER, strongEtag } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'
import { answerArchive, answerContent, answerFile } from '../http/send/file.ts'
import { answer, bytesAnswers, DOCUMENT_EXAMPLE, json } from '../openapi/responses.ts'
import {
  ArtifactParamsSchema, DiscoveryIndexSchema, LegacyDiscoveryIndexSchema, LegacyFileParamsSchema,
  SkillIndexParamsSchema, SkillLegacyFileParamsSchema
} from '../schemas/well-known.ts'
import { Discovery, IMMUTABLE } from './discovery.ts'

interface WellKnownOptions {
  readonly skillsOf: SkillsOf
  /** Whether pages of any origin may read these documents; false if only this machine reaches the service. */
  readonly isPublic: boolean
}

/** Path from the index of one skill to the artifacts, which all indexes share. */
const ARTIFACTS = '../../../../.well-known/agent-skills/'

const INDEXES = [
  {
    version: '0.2.0',
    path: '/.well-known/agent-skills/index.json',
    content: json(DiscoveryIndexSchema, { index: { $ref: '#/components/examples/DiscoveryIndex' } }),
    ofAll: {
      operationId: 'getDiscoveryIndex',
      summary: 'The skills that clients can install, with digests',
      description: 'Version 0.2.0 of skill discovery. Lists the skills that its clients take; the addresses in it ' +
        'contain the digests of the artifacts.'
    },
    ofOne: { operationId: 'getSkillDiscoveryIndex', summary: 'The index of one skill' }
  },
  {
    version: '0.1.0',
    path: '/.well-known/skills/index.json',
    content: json(LegacyDiscoveryIndexSchema),
    ofAll: {
      operationId: 'getLegacyDiscoveryIndex',
      summary: 'The skills that clients can install, with their files',
      description: 'Version 0.1.0 of skill discovery. Lists the skills whose files all have names that its clients ' +
        'can ask for.'
    },
    ofOne: { operationId: 'getSkillLegacyDiscoveryIndex', summary: 'The index of one skill, with its files' }
  }
] as const

const UNCHANGING = 'Never changes. After a change of the skill it stays readable while its revision is kept, and is ' +
  '404 afterwards.'

const FILE_ANSWERS = bytesAnswers(['*/*'], DOCUMENT_EXAMPLE, 'The bytes, under the media type of the file')

/** Registers skill discovery over well-known URIs (drafts 0.2.0 and 0.1.0), for all skills and for a single one. */
export const wellKnown: FastifyPluginAsyncTypebox<WellKnownOptions> = async function wellKnown (
  app, { skillsOf, isPublic }
) {
  const discoveries = new WeakMap<View, Discovery>()
  const discoveryOf = (request: FastifyRequest): Discovery => {
    const skills = skillsOf(request)
    const discovery = discoveries.get(skills) ?? new Discovery(skills)
    discoveries.set(skills, discovery)
    return discovery
  }
  if (isPublic) {
    app.addHook('onRequest', async ({ principal }, reply) => {
      // Skills that a caller sees with credentials must not be readable by pages of other origins.
      if (principal === undefined || principal.kind === 'anonymous') reply.header('access-control-allow-origin', '*')
    })
  }

  for (const { version, path, content, ofAll, ofOne } of INDEXES) {
    app.get(path, {
      config: { reads: { event: 'discovery.index', api: 'well-known' }, load: 'costly' },
      schema: {
        ...ofAll,
        tags: ['discovery'],
        response: { 200: answer('The index', content, 'catalog-revision') }
      }
    }, async (request, reply) => {
      const { feed } = skillsOf(request)
      const { [version]: index } = await withCatalogRevision(reply, feed, () =>
        discoveryOf(request).indexes(() => feed.revision))
      return index
    })

    app.get(`/skills/:name${path}`, {
      config: { reads: { event: 'discovery.index', api: 'well-known' } },
      schema: {
        ...ofOne,
        description: `Version ${version} of skill discovery for clients that have the address of a skill. The list ` +
          'is empty if these clients do not take the skill.',
        tags: ['discovery'],
        params: SkillIndexParamsSchema,
        response: { 200: answer('The index', content) }
      }
    }, async (request) => {
      const { [version]: index } = await discoveryOf(request).indexesOf(request.params.name, ARTIFACTS)
      return index
    })
  }

  async function sendArtifact (
    request: FastifyRequest, reply: FastifyReply, { name, digest }: { name: string, digest: string },
    type: 'skill-md' | 'archive'
  ) {
    const artifact = await discoveryOf(request).findArtifact(name, type, digest)
    if (artifact === undefined) throw new HttpProblem('artifact_not_found')
    reply.header('cache-control', IMMUTABLE).header(REVISION_HEADER, artifact.revision)
    return 'content' in artifact
      ? answerContent(request, reply, artifact.content, 'text/markdown')
      : answerArchive(request, reply, artifact.archive, name, strongEtag(digest))
  }

  app.get('/.well-known/agent-skills/:name/:digest/SKILL.md', {
    config: { reads: { event: 'skill.read', api: 'well-known' } },
    schema: {
      operationId: 'getDiscoveryDocument',
      summary: 'A skill that is one SKILL.md',
      description: `What the index lists as \`skill-md\`. ${UNCHANGING}`,
      tags: ['discovery'],
      params: ArtifactParamsSchema,
      response: bytesAnswers(['text/markdown'], DOCUMENT_EXAMPLE, 'The bytes')
    }
  }, async (request, reply) => sendArtifact(request, reply, request.params, 'skill-md'))

  app.get('/.well-known/agent-skills/:name/:digest/archive.zip', {
    config: { reads: { event: 'skill.archive', api: 'well-known' }, load: 'costly' },
    schema: {
      operationId: 'getDiscoveryArchive',
      summary: 'A skill of several files as a ZIP archive',
      description: `What the index lists as \`archive\`. ${UNCHANGING}`,
      tags: ['discovery'],
      params: ArtifactParamsSchema,
      response: bytesAnswers([ZIP_MEDIA_TYPE], 'PK', 'The archive')
    }
  }, async (request, reply) => sendArtifact(request, reply, request.params, 'archive'))

  /** Sends a file that the index lists. `SKILL.md` is the main file in any casing. */
  async function sendFile (request: FastifyRequest, reply: FastifyReply, name: string, file: string) {
    if (!await discoveryOf(request).listsFile(name, file)) throw new HttpProblem('artifact_not_found')
    return answerFile(request, reply, await skillsOf(request).read(name, (skill) => skill.open(file)), file)
  }

  app.get('/.well-known/skills/:name/*', {
    config: { reads: { event: 'skill.file_read', api: 'well-known' } },
    schema: {
      operationId: 'getLegacyDiscoveryFile',
      summary: 'A file that the index lists',
      description: 'The bytes of a file of a skill in the index 0.1.0.',
      tags: ['discovery'],
      params: LegacyFileParamsSchema,
      response: FILE_ANSWERS
    }
  }, async (request, reply) => sendFile(request, reply, request.params.name, request.params['*']))

  app.get('/skills/:name/.well-known/skills/:skill/*', {
    config: { reads: { event: 'skill.file_read', api: 'well-known' } },
    schema: {
      operationId: 'getSkillLegacyDiscoveryFile',
      summary: 'A file that the index of one skill lists',
      description: 'The bytes of a file of the skill in its index 0.1.0.',
      tags: ['discovery'],
      params: SkillLegacyFileParamsSchema,
      response: FILE_ANSWERS
    }
  }, async (request, reply) => {
    const { name, skill, '*': file } = request.params
    if (name !== skill) throw new HttpProblem('artifact_not_found')
    return sendFile(request, reply, name, file)
  })
}
