import {
  ProtocolError, ProtocolErrorCode, type ReadResourceResult, type Resource, ResourceNotFoundError
} from '@modelcontextprotocol/server'
import { mediaType } from '../../core/read/media-type.ts'
import { isTextKind } from '../../core/read/file-kind.ts'
import type { View } from '../../core/view.ts'
import { type Page, readPage } from './paging.ts'
import { type OriginOf, TRUST } from './skill-entries.ts'
import { mainFileUri, parseSkillUri } from '../skill-uri.ts'

export const resourceTemplates = [{
  uriTemplate: 'skill://{name}/{+path}',
  name: 'skill-file',
  title: 'File of a skill',
  description: 'Any file of a skill. `name` is the folder name of the skill, `path` is relative to it; both ' +
    'percent-encoded'
}]

/** Lists the main files of all skills, valid or not, one page at a time. The template gives the URIs of other files. */
export async function listResources (skills: View, cursor: string | undefined): Promise<Page<Resource>> {
  return await readPage(skills, cursor, async (name) => {
    const skill = await skills.find(name)
    if (skill?.digest === undefined) return undefined
    const { metadata } = skill
    return {
      uri: mainFileUri(name),
      name: metadata.name,
      ...metadata.description !== '' && { description: metadata.description },
      mimeType: mediaType('SKILL.md')
    }
  })
}

/** Reads a file: `text` if its bytes are UTF-8, else `blob`. */
export async function readResource (
  skills: View, uri: string, originOf?: OriginOf
): Promise<ReadResourceResult> {
  const parts = parseSkillUri(uri)
  if (parts === undefined || parts.path === '') {
    throw new ResourceNotFoundError(uri,
      'No such resource: files are skill://<name>/<path>, percent-encoded')
  }
  const { name, path } = parts
  const [content, verdict] = await skills.read(name, async (state) =>
    [await state.file(path), await originOf?.(state)] as const)
  const body = content.utf8 === undefined ? { blob: content.bytes.toString('base64') } : { text: content.utf8 }
  const mimeType = mediaType(path, isTextKind(content.kind))
  return { contents: [{ uri, mimeType, ...body, ...verdict && { _meta: { [TRUST]: verdict.report } } }] }
}

/**
 * Accepts a subscription without storing it: streams of `GET /mcp` report all main files anyway.
 * @throws {ProtocolError} -32602 for a URI that is not that of a main file
 */
export function acceptSubscription (uri: string): object {
  if (parseSkillUri(uri)?.path === 'SKILL.md') return {}
  throw new ProtocolError(ProtocolErrorCode.InvalidParams,
    'Subscribe to skill://<name>/SKILL.md: its updates are those of all files of the skill')
}
