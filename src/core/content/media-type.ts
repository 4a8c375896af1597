import { extname } from 'node:path/posix'
import mime from 'mime'

/** Where the common table answers with something else than what a skill means by the extension. */
const OVERRIDES: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.mdx': 'text/markdown',
  '.py': 'text/x-python',
  '.ts': 'text/x-typescript',
  '.mts': 'text/x-typescript',
  '.tsx': 'text/x-typescript',
  '.sh': 'text/x-shellscript',
  '.rb': 'text/x-ruby',
  '.go': 'text/x-go',
  '.rs': 'text/x-rust',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.sql': 'text/x-sql'
}

const UNKNOWN = 'application/octet-stream'

/** Media type of a file by its extension, without parameters; `application/octet-stream` for an unknown one. */
export function mediaType (path: string): string {
  const extension = extname(path).toLowerCase()
  if (extension === '') return UNKNOWN
  if (Object.hasOwn(OVERRIDES, extension)) return OVERRIDES[extension] ?? UNKNOWN
  return mime.getType(extension) ?? UNKNOWN
}

/** Whether bytes of this type are text, so that a charset belongs to it. */
export function isTextType (type: string): boolean {
  return type.startsWith('text/') || /^(?:application|image)\/(?:.+\+)?(?:json|xml|yaml|javascript|toml)$/.test(type)
}
