/** What no line of strict frontmatter holds: controls, other line ends, a byte order mark. Tabs are judged by line. */
const ODD_CHARACTER = /[^\P{Cc}\t\n]|[\u2028\u2029\ufeff]/u

/** A key as nearly everybody writes it, and its value on the same line. */
const KEY = /^([A-Za-z_][\w./-]*(?: [\w./-]+)*):(?: +(.*))?$/
const NOT_TEXT = /^(?:true|false|null|~)$/i

const BLOCK_HEADER = /^[|>][+-]?(?: +#.*)?$/
const QUOTED = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?: +#.*)?$/
const FLOW = /^([[{].*[\]}])(?: +#.*)?$/
/** Begins an anchor, an alias, a tag, a directive, a nested collection, or what YAML keeps for itself. */
const NOT_PLAIN = /^[&*!%@`,\]}]|^[-?:](?: |$)/
const COLON = /:(?: |$)/
const COMMENT = / #/

/** Could be a number in one of the spellings on which readers of YAML differ: `0b1`, `1_000`, `007`. */
const NUMBER_LIKE = /^[-+.\d][\da-fox_.:+-]*$/i
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/
const VERSION_OR_DATE = /^\d+(?:[.-]\d+){2,}$/

const FLOW_ITEM = /^(?:[\w./][\w ./:()*+-]*|"[^"\\]*"|'[^']*')$/
const FLOW_COLON = /:(?:[ ,]|$)/

interface Open {
  /** `value`: a key or dash with nothing behind it yet; `text`: a plain value, which more indented lines go on with. */
  readonly kind: 'value' | 'text' | 'block'
  /** Of the key or dash that it belongs to, in blanks. */
  readonly indent: number
  /** Of a block's first line. */
  readonly contentIndent?: number
  readonly commented?: boolean
}

/**
 * Whether YAML that could be read keeps to what the readers of MCP clients take too: block mappings and lists, plain,
 * quoted and block text, one-line flow lists and JSON; no anchors, tags or values that are quoted over several lines.
 * Says no in doubt: what is listed must be read in the same way by everybody, for a client refuses a difference.
 *
 * @param source the text between the fences
 * @returns what is in the way, for use after "the frontmatter has"; undefined when nothing is
 */
export function findLooseYaml (source: string): string | undefined {
  const text = source.replaceAll('\r\n', '\n')
  if (ODD_CHARACTER.test(text)) return 'control characters'
  if (text.includes('__proto__')) return "a field called '__proto__'"
  let open: Open | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const next = readLine(line, open)
    // The opening fence is line 1 of the file.
    if (typeof next === 'string') return `${next} in line ${index + 2}`
    open = next
  }
  return undefined
}

/** What is open after a line; a string for what is wrong with it. */
function readLine (line: string, open: Open | undefined): Open | string | undefined {
  const indent = line.search(/[^ ]|$/)
  const content = line.slice(indent)
  if (open?.kind === 'block') {
    const { contentIndent } = open
    if (content === '') return contentIndent === undefined && indent > 0 ? 'blanks before a block of text' : open
    if (indent > open.indent) {
      if (contentIndent !== undefined && indent < contentIndent) return 'uneven indentation'
      return { ...open, contentIndent: contentIndent ?? indent }
    }
    return readLine(line, undefined)
  }
  if (content === '') return open
  if (content.includes('\t')) return 'a tab'
  if (content.startsWith('#')) return open?.kind === 'value' ? open : undefined
  if (open?.kind === 'text' && indent > open.indent) {
    if (open.commented) return 'a value that goes on after a comment'
    return readPlain(content, open.indent)
  }
  return readNode(content, indent, open?.kind === 'value' && indent > open.indent ? open.indent : undefined)
}

/**
 * A line that begins with a key, a dash or a value.
 * @param valueOf indentation of the key or dash that waits for its value, if one does
 */
function readNode (content: string, indent: number, valueOf: number | undefined): Open | string | undefined {
  let rest = content
  let column = indent
  let parent = valueOf
  while (rest === '-' || rest.startsWith('- ')) {
    parent = column
    const item = rest.slice(1).trimStart()
    column += rest.length - item.length
    rest = item
  }
  const [, key, value = ''] = KEY.exec(rest) ?? []
  if (key !== undefined) return NOT_TEXT.test(key) ? 'a key that is not text' : readValue(value, column)
  return parent === undefined ? 'a line that is no plain key and value' : readValue(rest, parent)
}

function readValue (value: string, parent: number): Open | string | undefined {
  if (value === '' || value.startsWith('#')) return { kind: 'value', indent: parent }
  if (/^[|>]/.test(value)) return BLOCK_HEADER.test(value) ? { kind: 'block', indent: parent } : 'a block of text with an indentation of its own'
  if (/^["']/.test(value)) return QUOTED.test(value) ? undefined : 'a quoted value that does not end on its line'
  if (/^[[{]/.test(value)) return isPlainFlow(value) ? undefined : 'a collection in brackets that is not plain'
  if (NOT_PLAIN.test(value)) return 'an anchor, alias, tag or other special value'
  if (NUMBER_LIKE.test(value) && !DECIMAL.test(value) && !VERSION_OR_DATE.test(value)) return 'a number that is not plain'
  return readPlain(value, parent)
}

function readPlain (text: string, parent: number): Open | string {
  const comment = COMMENT.exec(text)
  const value = comment === null ? text : text.slice(0, comment.index)
  return COLON.test(value.trimEnd()) ? 'a colon in a value without quotes' : { kind: 'text', indent: parent, commented: comment !== null }
}

function isPlainFlow (value: string): boolean {
  const flow = FLOW.exec(value)?.[1]
  if (flow === undefined) return false
  try {
    JSON.parse(flow)
    return true
  } catch {
    return flow.startsWith('[') && flow.slice(1, -1).split(',').every((part) => isPlainItem(part.trim()))
  }
}

function isPlainItem (item: string): boolean {
  return FLOW_ITEM.test(item) && !FLOW_COLON.test(item) && (!NUMBER_LIKE.test(item) || DECIMAL.test(item))
}
