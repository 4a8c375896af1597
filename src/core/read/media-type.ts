import { extname } from 'node:path/posix'
import { Mime } from 'mime/lite'
import otherTypes from 'mime/types/other.js'
import standardTypes from 'mime/types/standard.js'

const types = new Mime(standardTypes, otherTypes)

// Extensions that `mime` maps to another type than skills mean, or to one that names no language.
types.define({
  'text/markdown': ['md', 'mdx'],
  'text/javascript': ['cjs'],
  'text/x-python': ['py'],
  'text/x-typescript': ['ts', 'mts', 'tsx'],
  'text/x-shellscript': ['sh'],
  'text/x-ruby': ['rb'],
  'text/x-go': ['go'],
  'text/x-rust': ['rs'],
  'text/x-perl': ['pl', 'pm'],
  'text/x-php': ['php'],
  'text/x-tex': ['tex'],
  'text/x-tcl': ['tcl'],
  'text/x-dart': ['dart'],
  'application/yaml': ['yaml', 'yml'],
  'text/x-sql': ['sql'],
  'text/plain': ['bat', 'mmd', 'org', 'dot', 'pot', 'tpl', 'scm', 'pub', 'srt']
}, true)

/** Returns the media type by extension, without parameters. Text with an unknown extension is `text/plain`. */
export function mediaType (path: string, isText = false): string {
  const known = types.getType(extname(path))
  return known ?? (isText ? 'text/plain' : 'application/octet-stream')
}

/** Whether a media type is text, and takes a charset. */
export function isTextType (type: string): boolean {
  return type.startsWith('text/') || /^(?:application|image)\/(?:.+\+)?(?:json5?|xml|yaml|javascript|toml)$/.test(type)
}
