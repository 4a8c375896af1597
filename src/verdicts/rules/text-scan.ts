import { finding, type FindingCode, type Position } from '../../core/format/findings.ts'
import type { Finding } from '../../core/shared/skill.ts'

/** Text without blanks of this many characters of base64 or hex says nothing to a reader. */
const BLOB_CHARACTERS = 1_024

/** Fewer different characters than this are a placeholder such as `ghp_xxxxxxxx`. */
const MIN_DIFFERENT_CHARACTERS = 8

/** Secrets that have a fixed form. Each expression begins with rare text and is bounded, so that a pass is linear. */
const SECRETS: ReadonlyArray<readonly [what: string, form: RegExp]> = [
  ['a private key', /-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY-----\s{1,2}([A-Za-z0-9+/]{40,80})/],
  ['a token of GitHub', /\b(?:gh[pousr]_([A-Za-z0-9]{36})|github_pat_([A-Za-z0-9_]{60,90}))\b/],
  ['an access key of AWS', /\b(?:AKIA|ASIA)(?![A-Z0-9]{9}EXAMPLE)([A-Z0-9]{16})\b/],
  ['a live key of Stripe', /\b[rs]k_live_([A-Za-z0-9]{20,120})\b/],
  ['a token of Slack', /\bxox[abeoprs]-([A-Za-z0-9-]{20,90})\b/],
  ['a key of Google', /\bAIza([A-Za-z0-9_-]{35})\b/],
  ['a key of Anthropic', /\bsk-ant-(?:api|admin)\d\d-([A-Za-z0-9_-]{40,120})/],
  ['a key of OpenAI', /\bsk-proj-([A-Za-z0-9_-]{40,200})/]
]

/** A download, and a shell that runs unseen what it is handed. */
const DOWNLOAD = /\b(?:curl|wget|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\s/i
const INTO_SHELL = /\|[^\S\n]*(?:sudo[^\S\n]+(?:-\w+[^\S\n]+)?)?(?:(?:ba|z|da|k)?sh|iex|Invoke-Expression)\b/gi

/** Longest download before a shell, in characters, and the shells that are looked before. */
const MAX_DOWNLOAD_CHARACTERS = 320
const MAX_SHELLS = 10_000

/**
 * Places of a main file that a person should review before use: form alone, no judgement of what a text is for.
 * @param text the whole file
 */
export function scanText (text: string): readonly Finding[] {
  return [...findSecrets(text), ...findBlob(text), ...findPipedDownload(text)]
}

/** The secret itself is not repeated. */
function findSecrets (text: string): Finding[] {
  return SECRETS.flatMap(([what, form]) => {
    const match = form.exec(text)
    const secret = match?.slice(1).find((part) => part !== undefined)
    if (match === null || secret === undefined || new Set(secret).size < MIN_DIFFERENT_CHARACTERS) return []
    return [found(
      'secret_in_text', `the text has what looks like ${what}`,
      'Remove it, and revoke it if it is real: every reader of the skill has it', positionAt(text, match.index)
    )]
  })
}

/** A long run covers a multiple of its least length, so only those characters are looked at. */
function findBlob (text: string): Finding[] {
  for (let end = BLOB_CHARACTERS - 1; end < text.length; end += BLOB_CHARACTERS) {
    if (!isBase64(text.charCodeAt(end))) continue
    let start = end
    while (start > 0 && isBase64(text.charCodeAt(start - 1))) start--
    while (end < text.length && isBase64(text.charCodeAt(end))) end++
    if (end - start >= BLOB_CHARACTERS &&
      new Set(text.slice(start, start + BLOB_CHARACTERS)).size >= MIN_DIFFERENT_CHARACTERS) {
      return [found('encoded_text', `the text has ${end - start} characters of encoded data in a row, which nobody ` +
        'can review',
      'Put the data into a file of its own, or leave it out', positionAt(text, start))]
    }
  }
  return []
}

function isBase64 (unit: number): boolean {
  return (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a) || (unit >= 0x2f && unit <= 0x39) ||
    unit === 0x2b || unit === 0x3d
}

/** One pass: what is before each shell is bounded. */
function findPipedDownload (text: string): Finding[] {
  let tried = 0
  for (const { index } of text.matchAll(INTO_SHELL)) {
    if (tried++ === MAX_SHELLS) break
    const before = text.slice(Math.max(0, index - MAX_DOWNLOAD_CHARACTERS), index)
    const command = before.slice(Math.max(...['|', '`', '\n'].map((end) => before.lastIndexOf(end))) + 1)
    const at = command.search(DOWNLOAD)
    if (at !== -1) {
      return [found(
        'download_to_shell', 'a command hands a download to a shell, which runs it unseen',
        'Name the program to be installed, or download, check and run it in separate steps',
        positionAt(text, index - command.length + at)
      )]
    }
  }
  return []
}

function found (code: FindingCode, message: string, fix: string, position: Position): Finding {
  return finding(code, message, fix, undefined, position)
}

function positionAt (text: string, index: number): Position {
  const before = text.slice(0, index)
  return { line: before.split('\n').length, column: index - before.lastIndexOf('\n') }
}
