import {
  ProtocolError, ProtocolErrorCode, type ReadResourceResult, type Resource, ResourceNotFoundError
} from '@modelcontextprotocol/server'
import { MCP_PAGE_ENTRIES } from '../limits.ts'
import type { Manifest, ManifestFile } from '../../core/shared/skill.ts'
import { mediaType } from '../../core/read/media-type.ts'
import { isTextKind } from '../../core/read/file-kind.ts'
import type { View } from '../../core/view.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { McpFault } from '../operation.ts'
import { type Page, readPage } from './paging.ts'
import { type OriginOf, TRUST } from './skill-entries.ts'
import { mainFileUri, parseSkillUri, skillUri } from '../skill-uri.ts'

export const resourceTemplates = [{
  uriTemplate: 'skill://{name}/{+path}',
  name: 'skill-file',
  title: 'File of a skill',
  description: 'Any file of a skill. `name` is the folder name of the skill, `path` is relative to it; both ' +
    'percent-encoded'
}]

/** Media type of folders in the Skills extension. */
const DIRECTORY = 'inode/directory'

const isFull = (items: readonly unknown[]) => items.length >= MCP_PAGE_ENTRIES

/** Lists the main files of all skills, valid or not, one page at a time. The template gives the URIs of other files. */
export async function listResources (skills: View, cursor: string | undefined): Promise<Page<Resource>> {
  return await readPage(skills.scope, await skills.list(), cursor, async (name) => {
    const skill = await skills.find(name)
    if (skill?.digest === undefined) return undefined
    const { metadata } = skill
    return {
      uri: mainFileUri(name),
      name: metadata.name,
      ...metadata.description !== '' && { description: metadata.description },
      mimeType: mediaType('SKILL.md')
    }
  }, isFull)
}

/** Reads a file: `text` if its bytes are UTF-8, else `blob`. */
export async function readResource (
  skills: View, uri: string, originOf?: OriginOf
): Promise<ReadResourceResult> {
  const parts = parseSkillUri(uri)
  if (parts === undefined || parts.path === '') {
    throw new ResourceNotFoundError(uri,
      'No such resource: files are skill://<name>/<path>, percent-encoded; folders are for resources/directory/read')
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

/** Lists one page of the direct children of a folder (Skills extension, `resources/directory/read`). */
export async function readDirectory (
  skills: View, uri: string, cursor: string | undefined
): Promise<Page<Resource>> {
  const parts = parseSkillUri(uri)
  if (parts === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams,
      'No such folder: folders are skill://<name> and skill://<name>/<path>')
  }
  const { name, path } = parts
  const children = childrenOf(await skills.read(name, (skill) => skill.manifest()), path === '' ? '' : `${path}/`)
  if (children.size === 0 && path !== '') {
    throw new McpFault('missing', `No folder of a skill is at ${skillUri(name, path)}`)
  }
  return await readPage(skills.scope, [...children.keys()].sort(compareCodePoints), cursor, async (child) => {
    const { media_type: mimeType = DIRECTORY, size_bytes: size } = children.get(child) ?? {}
    const uri = skillUri(name, path === '' ? child : `${path}/${child}`)
    return { uri, name: child, mimeType, ...size !== undefined && { size } }
  }, isFull)
}

/** Returns the direct children of a folder by name; undefined for a folder. A manifest has no empty folders. */
function childrenOf ({ files }: Manifest, prefix: string): ReadonlyMap<string, ManifestFile | undefined> {
  const children = new Map<string, ManifestFile | undefined>()
  for (const file of files) {
    const { path } = file
    if (!path.startsWith(prefix)) continue
    const [child = '', ...rest] = path.slice(prefix.length).split('/')
    children.set(child, rest.length === 0 ? file : undefined)
  }
  return children
}
