import { positionAt } from '../../core/format/hidden-text.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { finding, type FindingCode } from '../findings.ts'

/** What a person should review before use. A group of the form has to look random: placeholders do not. */
interface Sign {
  readonly code: FindingCode
  readonly message: string
  readonly fix: string
  /** Begins with rare text and is bounded, so that a pass is linear. */
  readonly form: RegExp
}

/** Fewest different characters of a secret: with fewer, it is a placeholder such as `ghp_xxxxxxxx`. */
const MIN_DIFFERENT_CHARACTERS = 8

const SECRETS: Readonly<Record<string, RegExp>> = {
  'a private key': /-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY-----\s{1,2}([A-Za-z0-9+/]{40,80})/g,
  'a token of GitHub': /\b(?:gh[pousr]_([A-Za-z0-9]{36})|github_pat_([A-Za-z0-9_]{60,90}))\b/g,
  'an access key of AWS': /\b(?:AKIA|ASIA)(?![A-Z0-9]{9}EXAMPLE)([A-Z0-9]{16})\b/g,
  'a live key of Stripe': /\b[rs]k_live_([A-Za-z0-9]{20,120})\b/g,
  'a token of Slack': /\bxox[abeoprs]-([A-Za-z0-9-]{20,90})\b/g,
  'a key of Google': /\bAIza([A-Za-z0-9_-]{35})\b/g,
  'a key of Anthropic': /\bsk-ant-(?:api|admin)\d\d-([A-Za-z0-9_-]{40,120})/g,
  'a key of OpenAI': /\bsk-proj-([A-Za-z0-9_-]{40,200})/g
}

const SIGNS: readonly Sign[] = [
  ...Object.entries(SECRETS).map(([what, form]): Sign => ({
    code: 'secret_in_text',
    message: `the text has what looks like ${what}`,
    fix: 'Remove it, and revoke it if it is real: every reader of the skill has it',
    form
  })),
  {
    code: 'encoded_text',
    message: 'the text has 1 KiB or more of encoded data in a row, which nobody can review',
    fix: 'Put the data into a file of its own, or leave it out',
    form: /(?<![A-Za-z0-9+/=])([A-Za-z0-9+/=]{1024,})/g
  },
  {
    code: 'download_to_shell',
    message: 'a command hands a download to a shell, which runs it unseen',
    fix: 'Name the program to be installed, or download, check and run it in separate steps',
    form: new RegExp('\\b(?:curl|wget|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\\s[^|`\\n]{0,200}?' +
      '\\|[^\\S\\n]*(?:sudo[^\\S\\n]+(?:-\\w+[^\\S\\n]+)?)?(?:(?:ba|z|da|k)?sh|iex|Invoke-Expression)\\b', 'gi')
  }
]

/** Finds the first place of each sign in a main file: form alone, no judgement of what a text is for. */
export function scanText (text: string): readonly Finding[] {
  return SIGNS.flatMap(({ code, message, fix, form }) => {
    for (const { 1: first, 2: second, index } of text.matchAll(form)) {
      const secret = first ?? second
      if (secret !== undefined && new Set(secret.slice(0, 1_024)).size < MIN_DIFFERENT_CHARACTERS) continue
      return [finding(code, message, fix, undefined, positionAt(text, index))]
    }
    return []
  })
}
