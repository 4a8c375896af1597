import { positionAt } from '../../core/format/hidden-text.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { finding, type FindingCode } from '../findings.ts'

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

/** A download, and a shell that runs unseen what it is handed. The bound keeps a pass linear. */
const DOWNLOAD_TO_SHELL = new RegExp(
  '\\b(?:curl|wget|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\\s[^|`\\n]{0,200}?' +
  '\\|[^\\S\\n]*(?:sudo[^\\S\\n]+(?:-\\w+[^\\S\\n]+)?)?(?:(?:ba|z|da|k)?sh|iex|Invoke-Expression)\\b', 'i')

/** What is found, and where. */
type Place = readonly [code: FindingCode, message: string, fix: string, index: number]

/**
 * Places of a main file that a person should review before use: form alone, no judgement of what a text is for.
 * @param text the whole file
 */
export function scanText (text: string): readonly Finding[] {
  return [...findSecrets(text), ...findBlob(text), ...findPipedDownload(text)].map(([code, message, fix, index]) =>
    finding(code, message, fix, undefined, positionAt(text, index)))
}

/** The secret itself is not repeated. */
function findSecrets (text: string): Place[] {
  return SECRETS.flatMap(([what, form]): Place[] => {
    const match = form.exec(text)
    const secret = match?.slice(1).find((part) => part !== undefined)
    if (match === null || secret === undefined || new Set(secret).size < MIN_DIFFERENT_CHARACTERS) return []
    const fix = 'Remove it, and revoke it if it is real: every reader of the skill has it'
    return [['secret_in_text', `the text has what looks like ${what}`, fix, match.index]]
  })
}

function findBlob (text: string): Place[] {
  for (const { 0: { length }, index } of text.matchAll(/[A-Za-z0-9+/=]+/g)) {
    const isBlob = length >= BLOB_CHARACTERS &&
      new Set(text.slice(index, index + BLOB_CHARACTERS)).size >= MIN_DIFFERENT_CHARACTERS
    if (!isBlob) continue
    const sentence = `the text has ${length} characters of encoded data in a row, which nobody can review`
    return [['encoded_text', sentence, 'Put the data into a file of its own, or leave it out', index]]
  }
  return []
}

function findPipedDownload (text: string): Place[] {
  const index = text.search(DOWNLOAD_TO_SHELL)
  const fix = 'Name the program to be installed, or download, check and run it in separate steps'
  if (index === -1) return []
  return [['download_to_shell', 'a command hands a download to a shell, which runs it unseen', fix, index]]
}
