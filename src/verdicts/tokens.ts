import { basename } from 'node:path/posix'
import { locateFrontmatter } from '../core/format/fences.ts'
import type { ListedFile, SkillMetadata } from '../core/shared/skill.ts'
import type { Subject } from './subject.ts'

/** About how many tokens a skill costs a model, rounded to two digits. */
export interface TokenEstimate {
  /** Name and description, which a list costs in each turn. */
  readonly listed: number
  /** The body, once the skill is in use; null when SKILL.md cannot be read. */
  readonly body: number | null
  /** SKILL.md and all other text files: the most that it may cost. Null when the files are not known. */
  readonly all_files: number | null
  /** How the figures were made. */
  readonly method: string
}

export const TOKEN_METHOD = 'estimate from words and characters, within about 15 % of o200k; other files than SKILL.md by size'

/**
 * Tokens for each run of ASCII letters, each such letter, and so on. Fitted to o200k_base and to Anthropic's published
 * tokenizer over 667 real files of skills: 95 % of them are within 15 % of either. Exact counters take 30 MB or a key.
 */
const PER_WORD = 0.691
const PER_LETTER = 0.078
const PER_DIGIT = 1.1
const PER_MARK = 0.705
const PER_LINE = 0.99
const PER_IDEOGRAPH = 0.65
const PER_OTHER_LETTER = 0.4
const PER_SYMBOL = 1.7

/** Characters of a text that are counted without a pause. A word that goes on behind them counts twice, which does not matter to an estimate. */
const COUNTED_TOGETHER = 65_536

/** Of files that are not read. */
const BYTES_PER_TOKEN = 4

/** Extensions of files that a model does not read as text. */
const BINARY = /\.(?:7z|a|avi|bin|bmp|bz2|class|db|dll|docx?|dylib|eot|exe|gif|gz|icns|ico|jar|jpe?g|mov|mp[34]|o|odt|ogg|otf|pdf|png|pptx?|pyc|rar|so|sqlite\d?|tar|tgz|tiff?|ttf|wasm|wav|webm|webp|woff2?|xlsx?|xz|zip|zst)$/i

const OTHER_LETTER = /[\p{L}\p{M}\p{N}]/u

/** By UTF-16 code unit, once it is known: the expression takes ten times as long. */
const [UNKNOWN, LETTER, SYMBOL] = [0, 1, 2]
const kinds = new Uint8Array(65_536)

/** Token estimates of a skill in one state. */
export function * estimateTokens ({ skill: { metadata }, mainFile, files }: Pick<Subject, 'skill' | 'mainFile' | 'files'>): Generator<undefined, TokenEstimate> {
  const text = mainFile === undefined ? undefined : yield * textTokens(mainFile)
  return {
    listed: roundTokens(listedTokens(metadata)),
    body: text === undefined ? null : roundTokens(text.body),
    all_files: files === undefined ? null : roundTokens((text?.whole ?? 0) + tokensOfOthers(files, text === undefined ? undefined : basename(metadata.path))),
    method: TOKEN_METHOD
  }
}

/** Each part of a main file is read once. */
function * textTokens (mainFile: Buffer): Generator<undefined, { readonly body: number, readonly whole: number }> {
  const { kind, bodyStart } = locateFrontmatter(mainFile)
  const text = mainFile.toString('utf8', bodyStart)
  let body = 0
  for (let start = 0; start < text.length; start += COUNTED_TOGETHER) {
    body += countTokens(text.slice(start, start + COUNTED_TOGETHER))
    yield
  }
  // Lines that end at the start of the body continue the line end before it.
  const shared = kind === 'found' && text.startsWith('\n') ? PER_LINE : 0
  return { body, whole: countTokens(mainFile.toString('utf8', 0, bodyStart)) + body - shared }
}

/** What a list of skills costs for one of them, not rounded. */
export function listedTokens ({ name, description }: Pick<SkillMetadata, 'name' | 'description'>): number {
  return countTokens(`${name}: ${description}`)
}

/** @param counted the path in the skill of the file whose text was counted */
function tokensOfOthers (files: readonly ListedFile[], counted: string | undefined): number {
  let bytes = 0
  for (const { path, size_bytes: size } of files) if (!BINARY.test(path) && path !== counted) bytes += size
  return bytes / BYTES_PER_TOKEN
}

/** About how many tokens a text has. One pass; linear in its length. */
function countTokens (text: string): number {
  let tokens = 0
  let before: 'letter' | 'mark' | 'line' | 'other' = 'other'
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if ((unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a)) {
      tokens += PER_LETTER + (before === 'letter' ? 0 : PER_WORD)
      before = 'letter'
    } else if (unit === 0x0a) {
      tokens += before === 'line' ? 0 : PER_LINE
      before = 'line'
    } else if (unit <= 0x20) {
      before = 'other'
    } else if (unit >= 0x30 && unit <= 0x39) {
      tokens += PER_DIGIT
      before = 'other'
    } else if (unit < 0x7f) {
      tokens += before === 'mark' ? PER_MARK / 2 : PER_MARK
      before = 'mark'
    } else {
      tokens += beyondAscii(text, i, unit)
      before = 'other'
    }
  }
  return tokens
}

function beyondAscii (text: string, at: number, unit: number): number {
  // A character outside the basic plane is counted once.
  if (unit >= 0xdc00 && unit < 0xe000) return 0
  if ((unit >= 0x2e80 && unit <= 0x9fff) || (unit >= 0xac00 && unit <= 0xd7a3) || (unit >= 0xf900 && unit <= 0xfaff) || (unit >= 0xff00 && unit <= 0xffef)) return PER_IDEOGRAPH
  const kind = kinds[unit] === UNKNOWN ? kinds[unit] = OTHER_LETTER.test(text.charAt(at)) ? LETTER : SYMBOL : kinds[unit]
  return kind === LETTER ? PER_OTHER_LETTER : PER_SYMBOL
}

/** To two digits, so that nobody takes it for a count. */
export function roundTokens (tokens: number): number {
  if (tokens < 100) return Math.round(tokens)
  const step = 10 ** (Math.floor(Math.log10(tokens)) - 1)
  return Math.round(tokens / step) * step
}
