import GithubSlugger from 'github-slugger'
import MarkdownIt, { type MarkdownIt as Parser, type Token } from 'markdown-it'
import { encodePath } from '../../core/shared/paths.ts'
import { escape, escapeVisibly } from '../markup/html.ts'
import { linkTarget, type LinkTarget } from './links.ts'

/** Longest text that is rendered, in UTF-16 code units; 99 % of real SKILL.md files have less than 32 KB. */
export const MAX_MARKDOWN_CHARACTERS = 65_536

/** Longest HTML of one text, in UTF-16 code units: a hidden character becomes a mark of 80. */
const MAX_HTML_CHARACTERS = 1_048_576

/** HTML, or the reason why a text is shown as plain text. */
export type Rendering = { readonly html: string } | { readonly plain: 'large' | 'deep' }

export interface MarkdownContext {
  /** Path of the file in its skill. */
  readonly path: string
  /** Address of the skill's page, relative to the page that shows the text. */
  readonly skillPage: string
  /** Address of the bytes of files, ending with a slash. */
  readonly bytes: string
  /** Level of the page's heading above the text. */
  readonly level: number
  /** Paths of all files of the skill, if they are known: links to other files are marked. */
  readonly files?: ReadonlySet<string>
}

/** State of the rules while one text is rendered. */
interface State extends MarkdownContext {
  readonly slugger: GithubSlugger
  /** HTML that follows the open link; undefined outside of links. */
  linkEnd: string | undefined
  /** Whether the open heading has text. */
  isHeading: boolean
  /** Level of the last heading. */
  lastLevel: number
  /** Lines of the text, for link definitions, which Markdown does not render. */
  readonly lines: readonly string[]
}

/** Prefix that keeps ids of a skill's headings apart from those of the page, and from properties of the document. */
const ID_PREFIX = 'user-content-'
const LANGUAGE = /^[\w+#-]{1,32}/
const LINES = /^L\d{1,9}(?:-L\d{1,9})?$/
const TASK = /^\[([ xX])\][ \t]/
const DEEPEST_HEADING = 6

/** Deepest nesting of quotations and lists; the parser drops deeper ones. */
const MAX_NESTING = 100

const LINE_END = /\r\n?|\n/

/** Creates a renderer of GitHub's Markdown. It shows raw HTML as text, and also parts that Markdown hides. */
function createRenderer (): { readonly markdown: Parser, readonly setState: (state: State) => void } {
  let state: State
  const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: MAX_NESTING })
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false }).add('ftp:', null).add('//', null)
  // A link that leads nowhere stays as it is written, with its target.
  markdown.validateLink = (href) => linkTarget(href, state.path).kind !== 'elsewhere'
  markdown.core.ruler.disable('strip_references')
  const { rules } = markdown.renderer

  rules['text'] = rules['code_inline'] = (tokens, index) => {
    const { type, content } = at(tokens, index)
    const text = escapeVisibly(content)
    if (type !== 'code_inline') return text
    const code = `<code>${text}</code>`
    // Authors name files in code more often than they link to them.
    const isFile = state.linkEnd === undefined && content !== state.path && state.files?.has(content) === true
    return isFile ? `<a${addressOf(content, { kind: 'file', path: content, fragment: '' }, state)}>${code}</a>` : code
  }
  rules['code_block'] = (tokens, index) => codeBlock(at(tokens, index).content)
  rules['fence'] = (tokens, index) => {
    const { content, info } = at(tokens, index)
    const [language] = LANGUAGE.exec(info.trim()) ?? []
    const rest = info.trim().slice(language?.length)
    const words = rest === '' ? '' : `<p class="aside">${escapeVisibly(info.trim())}</p>`
    return words + codeBlock(content, language)
  }
  rules['reference_definition'] = (tokens, index) => {
    const [start, end] = at(tokens, index).map ?? [0, 0]
    return `<p class="aside definition"><code>${escapeVisibly(state.lines.slice(start, end).join('\n'))}</code></p>\n`
  }

  rules['heading_open'] = (tokens, index) => {
    const token = at(tokens, index)
    state.isHeading = !isBlank(tokens[index + 1])
    if (!state.isHeading) return '<p>'
    const wanted = state.level + Number(token.tag.slice(1))
    // Screen readers navigate by levels, so none is skipped, even if the author does.
    state.lastLevel = Math.min(wanted, state.lastLevel + 1, DEEPEST_HEADING)
    const id = ID_PREFIX + state.slugger.slug(textOf(tokens[index + 1]))
    const href = escape(`#${encodeURIComponent(id)}`)
    const anchor = `<a class="anchor" href="${href}" aria-hidden="true" tabindex="-1">#</a>`
    return `<h${state.lastLevel} id="${escape(id)}">${anchor}`
  }
  rules['heading_close'] = () => state.isHeading ? `</h${state.lastLevel}>\n` : '</p>\n'

  rules['link_open'] = (tokens, index) => {
    const href = String(at(tokens, index).attrGet('href'))
    const target = linkTarget(href, state.path)
    const text = textUpTo(tokens, index).trim()
    // A link without visible text would hide its target.
    const label = text === '' ? escapeVisibly(target.kind === 'file' ? target.path : href) : ''
    const isMissing = target.kind === 'file' && !isThere(state, target.path)
    const missing = isMissing ? ` <span class="missing">${escapeVisibly(target.path)} is not in the skill</span>` : ''
    const named = 'host' in target && text !== '' && !namesHost(text, target.host) ? target.host : ''
    state.linkEnd = `${label}</a>${missing}${aside([named, titleOf(at(tokens, index))])}`
    return `<a${addressOf(href, target, state)}>`
  }
  rules['link_close'] = () => {
    const { linkEnd = '</a>' } = state
    state.linkEnd = undefined
    return linkEnd
  }
  rules['image'] = (tokens, index) => {
    const token = at(tokens, index)
    const source = String(token.attrGet('src'))
    const text = textOf(token)
    const target = linkTarget(source, state.path)
    if (target.kind === 'file' && isThere(state, target.path)) {
      const address = escape(state.bytes + encodePath(target.path))
      return `<img src="${address}" alt="${escape(text)}" loading="lazy">${aside([titleOf(token)])}`
    }
    const where = target.kind === 'web'
      ? `image on ${target.host}`
      : `${target.kind === 'file' ? target.path : source} is not in the skill`
    const label = escapeVisibly(text === '' ? 'image' : text) + aside([where, titleOf(token)])
    const isLink = target.kind === 'web' && state.linkEnd === undefined
    return isLink ? `<a${addressOf(source, target, state)}>${label}</a>` : label
  }

  // A wide table scrolls by itself, also by keyboard.
  rules['table_open'] = () => '<div class="table" tabindex="0"><table>\n'
  rules['table_close'] = () => '</table></div>\n'
  rules['th_open'] = rules['td_open'] = (tokens, index) => {
    const tag = cellTag(at(tokens, index), tokens[index + 1])
    const [, side] = /text-align:(left|center|right)/.exec(String(at(tokens, index).attrGet('style'))) ?? []
    return `<${tag}${side === undefined ? '' : ` class="align-${side}"`}>`
  }
  rules['th_close'] = rules['td_close'] = (tokens, index) => `</${cellTag(at(tokens, index), tokens[index - 1])}>\n`

  markdown.core.ruler.push('tasks', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      const first = token.children?.[0]
      if (token.type !== 'inline' || first?.type !== 'text' || tokens[index - 2]?.type !== 'list_item_open') continue
      const [start, mark] = TASK.exec(first.content) ?? []
      if (start === undefined) continue
      first.content = first.content.slice(start.length)
      tokens[index - 2]?.attrSet('class', mark === ' ' ? 'task' : 'task done')
    }
  })
  return { markdown, setState: (next) => { state = next } }
}

let renderer: ReturnType<typeof createRenderer> | undefined

/** Renders a text in Markdown, unless it is too long, or nested more deeply than the parser reads. */
export function renderMarkdown (text: string, context: MarkdownContext): Rendering {
  if (text.length > MAX_MARKDOWN_CHARACTERS) return { plain: 'large' }
  const { markdown, setState } = renderer ??= createRenderer()
  const lines = text.split(LINE_END)
  const slugger = new GithubSlugger()
  setState({ ...context, slugger, linkEnd: undefined, lastLevel: context.level, isHeading: false, lines })
  const environment = {}
  const tokens = markdown.parse(text, environment)
  if (tokens.some(({ level, nesting }) => nesting === 1 && level >= MAX_NESTING - 1)) return { plain: 'deep' }
  const html = markdown.renderer.render(tokens, markdown.options, environment)
  return html.length > MAX_HTML_CHARACTERS ? { plain: 'large' } : { html }
}

/** Shows text that Markdown would hide, in small letters after the element that it belongs to. */
function aside (texts: readonly string[]): string {
  return texts.map((text) => text === '' ? '' : ` <span class="aside">${escapeVisibly(text)}</span>`).join('')
}

function titleOf (token: Token): string {
  return String(token.attrGet('title') ?? '')
}

/** Whether a link's text begins with the host of its target: further on, the host may be part of another address. */
function namesHost (text: string, host: string): boolean {
  const address = text.toLowerCase().replace(/^(?:https?:\/\/|mailto:)/, '')
  return address.startsWith(host.toLowerCase()) && /^(?:[/?#]|$)/.test(address.slice(host.length))
}

function codeBlock (content: string, language?: string): string {
  const name = language === undefined ? '' : ` class="language-${escape(language)}"`
  return `<pre tabindex="0"><code${name}>${escapeVisibly(content)}</code></pre>\n`
}

/** Returns the attributes of an `a` element. */
function addressOf (href: string, target: LinkTarget, { skillPage, files }: State): string {
  switch (target.kind) {
    case 'heading': return ` href="${escape(target.id === '' ? '#' : `#${encodeURIComponent(ID_PREFIX + target.id)}`)}"`
    case 'file': return ` href="${escape(fileAddress(target.path, target.fragment, skillPage, files))}"`
    case 'mail': return ` href="${escape(href)}"`
    case 'web': return ` href="${escape(href)}" rel="noopener noreferrer nofollow ugc"`
    case 'elsewhere': return ''
  }
}

function fileAddress (
  path: string, fragment: string, skillPage: string, files: ReadonlySet<string> | undefined
): string {
  if (files?.has(path) === false) return `${skillPage}#files`
  const page = `${skillPage}/files/${encodePath(path)}`
  // Line numbers are those of the source, also of Markdown, as on Git hosts.
  if (LINES.test(fragment)) return `${page}#${fragment}`
  const anchor = fragment === '' ? '' : `#${encodeURIComponent(ID_PREFIX + fragment)}`
  return /\.mdx?$/i.test(path) ? `${page}?view=rendered${anchor}` : page
}

/** Whether the skill has a file or a folder at a path; true if its files are not known. */
function isThere ({ files }: State, path: string): boolean {
  if (files === undefined || files.has(path) || path === '.') return true
  const folder = path.endsWith('/') ? path : `${path}/`
  for (const file of files) if (file.startsWith(folder)) return true
  return false
}

function at (tokens: readonly Token[], index: number): Token {
  const token = tokens[index]
  if (token === undefined) throw new Error('a rule was called without its token')
  return token
}

/** Returns the text of an inline token or an image, from its children. */
function textOf (token: Token | undefined): string {
  const { children = [], content = '' } = token ?? {}
  if (children === null || children.length === 0) return token?.type === 'image' ? '' : content
  return children.map((child) => {
    if (child.type === 'softbreak' || child.type === 'hardbreak') return ' '
    return child.type === 'image' ? textOf(child) : child.content
  }).join('')
}

/** Whether a screen reader would say nothing for a heading or a cell. */
function isBlank (inline: Token | undefined): boolean {
  return textOf(inline).trim() === ''
}

/** Returns the tag of a cell: a column head without text is an ordinary cell. */
function cellTag ({ tag }: Token, inline: Token | undefined): string {
  return tag === 'th' && isBlank(inline) ? 'td' : tag
}

/** Returns the text between a link's start and its end. */
function textUpTo (tokens: readonly Token[], start: number): string {
  let text = ''
  for (const token of tokens.slice(start + 1)) {
    if (token.type === 'link_close') break
    text += token.content
  }
  return text
}
