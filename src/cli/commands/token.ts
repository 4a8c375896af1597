import { GROUP, GROUP_FORM, NAME, NAME_FORM, parseExpiry } from '../../access/schema.ts'
import { createSecret, digestOf } from '../../access/secret.ts'
import { ConfigError, quote } from '../../operator/setting.ts'
import type { RunCommand } from '../command.ts'

const DAYS = /^([1-9]\d{0,3})d$/
const DAY_MS = 86_400_000

interface Options {
  readonly group?: readonly string[]
  readonly scope?: readonly string[]
  readonly expires?: string
  readonly link?: true
}

/** Creates a secret and prints it once. The secret is not stored: the access file gets its digest. */
export const run: RunCommand<Options> = async ({ positionals: [name = ''], options }, { print }) => {
  const { group: groups = [], scope: scopes = [], expires, link: isLink = false } = options
  if (!NAME.test(name)) throw new ConfigError(`${quote(name)} is not a ${NAME_FORM}`)
  const unfit = groups.find((group) => !GROUP.test(group))
  if (unfit !== undefined) throw new ConfigError(`${quote(unfit)} is not a name for a group: ${GROUP_FORM}`)
  if (isLink && scopes.length > 0) {
    throw new ConfigError('--scope does not apply to --link: a link opens discovery documents only')
  }
  const secret = createSecret(isLink ? 'link' : 'token')
  const fields = [
    `name: ${JSON.stringify(name)}`,
    `sha256: ${digestOf(secret)}`,
    ...groups.length > 0 ? [`groups: ${JSON.stringify(groups)}`] : [],
    ...scopes.length > 0 ? [`scopes: ${JSON.stringify(scopes)}`] : [],
    ...expires === undefined ? [] : [`expires: ${dateOf(expires)}`]
  ]
  print(isLink ? `/t/${secret}\n\n` : `${secret}\n\n`)
  print(`For the access file, below ${isLink ? 'links' : 'tokens'}:\n  - { ${fields.join(', ')} }\n`)
  return 0
}

function dateOf (text: string): string {
  const days = DAYS.exec(text)?.[1]
  // Written with the time: a date alone means its first minute, which is up to a day too early.
  if (days !== undefined) return new Date(Date.now() + Number(days) * DAY_MS).toISOString().replace(/:\d\d\.\d+Z$/, 'Z')
  const time = parseExpiry(text)
  if (time === undefined) {
    throw new ConfigError(
      `--expires must be a number of days such as 30d, or a date such as 2027-03-01, not ${quote(text)}`
    )
  }
  if (time <= Date.now()) throw new ConfigError(`--expires must be in the future, and ${quote(text)} is past`)
  return text
}
