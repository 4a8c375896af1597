import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SkillArchive } from '../core/content/archive.ts'
import { attachment } from './content-disposition.ts'
import { sendChunks } from './send-file.ts'

const ZIP = 'application/zip'

/** Sends an archive, whole or the range asked for: `name`.zip. */
export function sendArchive (
  request: FastifyRequest, reply: FastifyReply, archive: SkillArchive, { name, etag }: { readonly name: string, readonly etag: string }
): FastifyReply {
  return sendChunks(request, reply.header('content-disposition', attachment(`${name}.zip`)), {
    mediaType: ZIP,
    size: archive.size,
    etag,
    revision: archive.revision,
    chunks: (start, end) => archive.chunks(start, end)
  })
}
