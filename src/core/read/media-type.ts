import { extname } from 'node:path/posix'
import { Mime } from 'mime/lite'
import otherTypes from 'mime/types/other.js'
import standardTypes from 'mime/types/standard.js'

const types = new Mime(standardTypes, otherTypes)

// Where the tables of `mime` have something else than what a skill means by the extension, or no language.
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

/** Media type of a file by its extension, without parameters: text with an unknown one is `text/plain`. */
export function mediaType (path: string, isText = false): string {
  const known = types.getType(extname(path))
  return known ?? (isText ? 'text/plain' : 'application/octet-stream')
}

/** Whether bytes of this type are text, so that a charset belongs to it. */
export function isTextType (type: string): boolean {
  return type.startsWith('text/') || /^(?:application|image)\/(?:.+\+)?(?:json5?|xml|yaml|javascript|toml)$/.test(type)
}
