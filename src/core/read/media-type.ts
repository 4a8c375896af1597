import { extname } from 'node:path/posix'
import mime from 'mime'

/** Where the table of `mime` has something else than what a skill means by the extension, or no language. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['.md', 'text/markdown'],
  ['.mdx', 'text/markdown'],
  ['.py', 'text/x-python'],
  ['.ts', 'text/x-typescript'],
  ['.mts', 'text/x-typescript'],
  ['.tsx', 'text/x-typescript'],
  ['.cjs', 'text/javascript'],
  ['.sh', 'text/x-shellscript'],
  ['.rb', 'text/x-ruby'],
  ['.go', 'text/x-go'],
  ['.rs', 'text/x-rust'],
  ['.pl', 'text/x-perl'],
  ['.pm', 'text/x-perl'],
  ['.php', 'text/x-php'],
  ['.tex', 'text/x-tex'],
  ['.tcl', 'text/x-tcl'],
  ['.dart', 'text/x-dart'],
  ['.yaml', 'application/yaml'],
  ['.yml', 'application/yaml'],
  ['.sql', 'text/x-sql'],
  ['.bat', 'text/plain'],
  ['.mmd', 'text/plain'],
  ['.org', 'text/plain'],
  ['.dot', 'text/plain'],
  ['.pot', 'text/plain'],
  ['.tpl', 'text/plain'],
  ['.scm', 'text/plain'],
  ['.pub', 'text/plain'],
  ['.srt', 'text/plain']
])

/**
 * Media type of a file by its extension, without parameters.
 * @param isText whether the bytes are text: text with an unknown extension is `text/plain`
 */
export function mediaType (path: string, isText = false): string {
  const extension = extname(path).toLowerCase()
  const known = TYPES.get(extension) ?? (extension === '' ? null : mime.getType(extension))
  return known ?? (isText ? 'text/plain' : 'application/octet-stream')
}

/** Whether bytes of this type are text, so that a charset belongs to it. */
export function isTextType (type: string): boolean {
  return type.startsWith('text/') || /^(?:application|image)\/(?:.+\+)?(?:json5?|xml|yaml|javascript|toml)$/.test(type)
}
