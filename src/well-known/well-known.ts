import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PerSkills, type SkillsOf } from '../http/callers.ts'
import { strongEtag } from '../http/etag.ts'
import { ofOneRevision, REVISION_HEADER, type RevisionsOf } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'
import { ZIP_MEDIA_TYPE } from '../core/revisions/zip.ts'
import { answerArchive, answerContent, answerFile } from '../http/send/file.ts'
import { answerRendered } from '../http/send/json.ts'
import { DOCUMENT_EXAMPLE } from '../openapi/examples.ts'
import { ARTIFACT_PROBLEMS, FOLDER_PROBLEMS } from '../openapi/problem-sets.ts'
import { bytesAnswers, jsonAnswer, withCatalogRevision } from '../openapi/responses.ts'
import {
  ArtifactParamsSchema, DiscoveryIndexSchema, LegacyDiscoveryIndexSchema, LegacyFileParamsSchema
} from '../schemas/well-known.ts'
import { Discovery, hexOf, IMMUTABLE, isSingleFile } from './discovery.ts'
import { oneSkill } from './one-skill.ts'

interface WellKnownOptions {
  readonly skillsOf: SkillsOf
  readonly revisionsOf: RevisionsOf
  /** Whether any web page may read these documents; not where only this machine reaches the service. */
  readonly isPublic: boolean
}

/** Skill discovery over well-known URIs, versions 0.2.0 and 0.1.0 of the draft. */
export const wellKnown: FastifyPluginAsyncTypebox<WellKnownOptions> = async function wellKnown (
  app, { skillsOf, revisionsOf, isPublic }
) {
  const discoveries = new PerSkills((skills) => new Discovery(skills))
  if (isPublic) {
    app.addHook('onRequest', ({ principal }, reply, next) => {
      // What a caller sees that has proved who it is, is for that caller.
      if (principal === undefined || principal.kind === 'anonymous') reply.header('access-control-allow-origin', '*')
      next()
    })
  }

  const indexesFor = (request: FastifyRequest, reply: FastifyReply) => {
    const revisions = revisionsOf(request)
    const discovery = discoveries.of(skillsOf(request))
    return ofOneRevision(reply, revisionsOf, () => discovery.indexes(() => revisions.revision))
  }

  await app.register(oneSkill, { skillsOf, discoveries })

  app.get('/.well-known/agent-skills/index.json', {
    config: { reads: { event: 'discovery.index', door: 'well-known' }, load: 'costly' },
    schema: {
      operationId: 'getDiscoveryIndex',
      summary: 'The skills that clients can install, with digests',
      description: 'Version 0.2.0 of skill discovery. Lists the skills that its clients take; the addresses in it ' +
        'name the digests of what lies there.',
      tags: ['discovery'],
      response: { 200: withCatalogRevision(jsonAnswer(DiscoveryIndexSchema, 'The index')) },
      problems: FOLDER_PROBLEMS
    }
  }, async (request, reply) => {
    const { '0.2.0': index } = await indexesFor(request, reply)
    return answerRendered(reply, index, () => JSON.stringify(index))
  })

  app.get('/.well-known/agent-skills/:name/:digest/SKILL.md', {
    config: { reads: { event: 'skill.read', door: 'well-known' } },
    schema: {
      operationId: 'getDiscoveryDocument',
      summary: 'A skill that is one SKILL.md',
      description: 'What the index lists as `skill-md`. Never changes. After a change of the skill it stays readable ' +
        'while its revision is kept, and is 404 afterwards.',
      tags: ['discovery'],
      params: ArtifactParamsSchema,
      bytes: bytesAnswers(['text/markdown'], DOCUMENT_EXAMPLE, 'The bytes'),
      problems: ARTIFACT_PROBLEMS
    }
  }, async (request, reply) => {
    const { name, digest } = request.params
    const discovery = discoveries.of(skillsOf(request))
    const installable = await discovery.findInstallable(name, (installable) =>
      isSingleFile(installable) && hexOf(installable.mainFile.digest) === digest)
    if (installable === undefined) throw new HttpProblem('artifact_not_found')
    reply.header('cache-control', IMMUTABLE).header(REVISION_HEADER, installable.manifest.revision)
    return answerContent(request, reply, installable.mainFile, 'text/markdown')
  })

  app.get('/.well-known/agent-skills/:name/:digest/archive.zip', {
    config: { reads: { event: 'skill.archive', door: 'well-known' }, load: 'costly' },
    schema: {
      operationId: 'getDiscoveryArchive',
      summary: 'A skill of several files as a ZIP archive',
      description: 'What the index lists as `archive`. Never changes. After a change of the skill it stays readable ' +
        'while its revision is kept, and is 404 afterwards.',
      tags: ['discovery'],
      params: ArtifactParamsSchema,
      bytes: bytesAnswers([ZIP_MEDIA_TYPE], 'PK', 'The archive'),
      problems: ARTIFACT_PROBLEMS
    }
  }, async (request, reply) => {
    const { name, digest } = request.params
    const discovery = discoveries.of(skillsOf(request))
    const installable = await discovery.findInstallable(name, async (installable) =>
      !isSingleFile(installable) && hexOf((await discovery.archive(installable)).digest) === digest)
    if (installable === undefined) throw new HttpProblem('artifact_not_found')
    reply.header('cache-control', IMMUTABLE).header(REVISION_HEADER, installable.manifest.revision)
    const { archive } = await discovery.archive(installable)
    return answerArchive(request, reply, archive, name, strongEtag(digest))
  })

  app.get('/.well-known/skills/index.json', {
    config: { reads: { event: 'discovery.index', door: 'well-known' }, load: 'costly' },
    schema: {
      operationId: 'getLegacyDiscoveryIndex',
      summary: 'The skills that clients can install, with their files',
      description: 'Version 0.1.0 of skill discovery. Lists the skills whose files all have names that its clients ' +
        'can ask for.',
      tags: ['discovery'],
      response: { 200: withCatalogRevision(jsonAnswer(LegacyDiscoveryIndexSchema, 'The index')) },
      problems: FOLDER_PROBLEMS
    }
  }, async (request, reply) => {
    const { '0.1.0': index } = await indexesFor(request, reply)
    return answerRendered(reply, index, () => JSON.stringify(index))
  })

  app.get('/.well-known/skills/:name/*', {
    config: { reads: { event: 'skill.file_read', door: 'well-known' } },
    schema: {
      operationId: 'getLegacyDiscoveryFile',
      summary: 'A file that the index lists',
      description: 'The bytes of a file of a skill in the index 0.1.0.',
      tags: ['discovery'],
      params: LegacyFileParamsSchema,
      bytes: bytesAnswers(['*/*'], DOCUMENT_EXAMPLE, 'The bytes, under the media type of the file'),
      problems: ARTIFACT_PROBLEMS
    }
  }, async (request, reply) => {
    const { name, '*': file } = request.params
    const skills = skillsOf(request)
    if (!await discoveries.of(skills).listsFile(name, file)) throw new HttpProblem('artifact_not_found')
    // `SKILL.md` is the main file in any casing.
    return answerFile(request, reply, await skills.openFile(name, file), file)
  })
}
