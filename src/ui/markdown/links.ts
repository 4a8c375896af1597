import { posix } from 'node:path'
import { parseRelativePath } from '../../core/read/relative-path.ts'
import { decodePercent } from '../../core/shared/text.ts'

/** Target of a link in a skill's Markdown. Pages do not link to `elsewhere`. */
export type LinkTarget =
  | { readonly kind: 'heading', readonly id: string }
  | { readonly kind: 'file', readonly path: string, readonly fragment: string }
  | { readonly kind: 'web', readonly host: string }
  /** `host` is the whole address. */
  | { readonly kind: 'mail', readonly host: string }
  | { readonly kind: 'elsewhere' }

const ELSEWHERE: LinkTarget = { kind: 'elsewhere' }
const SCHEME = /^[a-z][a-z\d+.-]*:/i
/** Colon before the first slash, which browsers could take for the end of a scheme. */
const COLON_FIRST = /^[^/?#]*:/
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const PARTS = /^([^?#]*)(?:\?[^#]*)?(?:#(.*))?$/s

/**
 * @param href address from the Markdown parser, percent-encoded
 * @param path path of the file with the link
 */
export function linkTarget (href: string, path: string): LinkTarget {
  const [scheme] = SCHEME.exec(href) ?? []
  if (scheme !== undefined) return withScheme(href, scheme.toLowerCase())
  const [, encoded = '', fragment = ''] = PARTS.exec(href) ?? []
  if (encoded === '') {
    return href.startsWith('#') ? { kind: 'heading', id: decodePercent(fragment) ?? fragment } : ELSEWHERE
  }
  const decoded = decodePercent(encoded)
  if (decoded === undefined || COLON_FIRST.test(decoded) || UNPRINTABLE.test(decoded) || /^[/\\]/.test(decoded)) {
    return ELSEWHERE
  }
  const parsed = parseRelativePath(posix.join(posix.dirname(path), decoded))
  return parsed.kind === 'inside'
    ? { kind: 'file', path: parsed.path, fragment: decodePercent(fragment) ?? '' }
    : ELSEWHERE
}

function withScheme (href: string, scheme: string): LinkTarget {
  if (scheme === 'mailto:') {
    return { kind: 'mail', host: decodePercent(href.slice(scheme.length).replace(/\?.*$/s, '')) ?? href }
  }
  if ((scheme !== 'https:' && scheme !== 'http:') || !URL.canParse(href)) return ELSEWHERE
  return { kind: 'web', host: new URL(href).host }
}
