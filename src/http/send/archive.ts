import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SkillArchive } from '../../core/revisions/archive.ts'
import { ZIP_MEDIA_TYPE } from '../../core/revisions/zip.ts'
import { attachment } from './content-disposition.ts'
import type { RevisionCondition } from '../revision.ts'
import { answerChunks } from './file.ts'

interface ArchiveAnswer {
  /** Of the skill: the file is called `name`.zip. */
  readonly name: string
  readonly etag: string
  readonly condition?: RevisionCondition | undefined
}

/** The body for an archive, whole or the range asked for; sets the headers. */
export function answerArchive (request: FastifyRequest, reply: FastifyReply, archive: SkillArchive, { name, etag, condition }: ArchiveAnswer): Readable {
  return answerChunks(request, reply.header('content-disposition', attachment(`${name}.zip`)), {
    mediaType: ZIP_MEDIA_TYPE,
    size: archive.size,
    etag,
    condition,
    chunks: (start, end) => archive.chunks(start, end)
  })
}
