import { SOURCE_KINDS, type Source } from '../kinds.ts'
import { AddressError } from '../source-error.ts'
import { decode, parseUrl, SCP_LIKE } from './parts.ts'

/** A repository as installers write it. */
const GITHUB = /^github:(?=[\w.-]+\/[\w.-]+)/i
const ADDRESS = /^(?:[a-z][a-z\d+.-]*:\/\/|github:)/i
const BEGIN = '(?:[a-z][a-z\\d+.-]*://|github:)'
/** What ends an address before it: another one, or a folder that is written `/…`, `./…`, `../…` or `~…`. */
const NEXT = `:(?:/(?!/)|\\.{1,2}/|~|${BEGIN})`
/** An address or a folder, behind a colon. */
const ROOTS = new RegExp(`:(${BEGIN}.*?(?=$|${NEXT})|[^:]*)`, 'gis')

/** Whether a text that stands for skills is an address, and not a folder. */
export function isAddress (text: string): boolean {
  return ADDRESS.test(text) || SCP_LIKE.test(text)
}

/** What a sentence may show of an address: protocol and host. A secret may stand before the host, and behind it. */
export function outlineOf (text: string): string {
  const [, protocol = '', host = ''] = /^([^/]*\/\/)?(?:([\w.-]+(?::\d+)?)(?=[/?#]|$)(?!.*@))?/s.exec(text) ?? []
  return `${protocol}${protocol && host && `${host}/`}…`
}

/**
 * The source that an address names, with the settings of its kind.
 * @throws AddressError for what cannot be used
 */
export function parseAddress (text: string): Source {
  if (/^github:/i.test(text) && !GITHUB.test(text)) throw new AddressError('write it as github:OWNER/REPOSITORY')
  const [address = '', ...rest] = text.replace(GITHUB, 'git+https://github.com/').split('#')
  const protocol = URL.canParse(address) ? new URL(address).protocol : ''
  const kinds = SOURCE_KINDS.filter(({ protocols }) => protocols.includes(protocol))
  const kind = kinds.find(({ isAddress }) => isAddress?.(new URL(address)) ?? true)
  if (kind === undefined) {
    parseUrl(address, kinds.length === 0 ? [protocol] : ['https:', 'http:'])
    const all = new Set(SOURCE_KINDS.flatMap(({ protocols }) => protocols.map((each) => `${each}//`)))
    throw new AddressError(kinds.length === 0
      ? `${protocol}// is not an address of skills, use ${[...all].join(', ')}`
      : 'an https:// address is an archive (.zip, .tar.gz) or a page of a git host; ' +
        `of a repository elsewhere it is written git+${protocol}//…`)
  }
  if (rest.length === 0) return kind.create(address, {})
  if (kind.parseFragment === undefined) throw new AddressError(`nothing stands behind # in a ${kind.kind} address`)
  return kind.create(address, kind.parseFragment(decode(rest.join('#'))))
}

/** The folders and addresses of a text with delimiters: `:`, on Windows `;`. */
export function splitRoots (text: string, delimiter: string): readonly string[] {
  return delimiter === ':' ? Array.from(`:${text}`.matchAll(ROOTS), ([, root = '']) => root) : text.split(delimiter)
}
