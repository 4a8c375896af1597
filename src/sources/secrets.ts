import { readRegularFile } from '../operator/files.ts'
import type { Environment } from '../operator/setting.ts'
import { SourceError } from './source-error.ts'
import type { SourceAuth } from './address/source-kind.ts'

const MAX_SECRET_BYTES = 65_536

export type RequestHeaders = Readonly<Record<string, string>>

/** Returns a token as a header, or a password where the settings have a user name. */
export async function credentialsOf (auth: SourceAuth, env: Environment): Promise<RequestHeaders> {
  const secret = await readSecret(auth, env)
  if (secret === undefined) return {}
  return auth.username === undefined ? { authorization: `Bearer ${secret}` } : basic(auth.username, secret)
}

export function basic (username: string, secret: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}` }
}

/** Reads a password or token, anew each time. Returns undefined where none is configured. */
export async function readSecret (auth: SourceAuth, env: Environment): Promise<string | undefined> {
  const { secretFile, secretVariable } = auth
  if (secretFile !== undefined) return await readSecretFile(secretFile)
  if (secretVariable === undefined) return undefined
  const secret = env[secretVariable]?.trim()
  if (!secret) throw new SourceError('secret_missing', 'the variable with the credentials is not set')
  return secret
}

/** @throws SourceError if there is none */
export async function readSecretFile (path: string): Promise<string> {
  const bytes = await readRegularFile(path).catch((cause: unknown) => {
    throw new SourceError('secret_missing', 'the file with the credentials cannot be read', { cause })
  })
  const text = bytes.toString().trim()
  if (text !== '' && text.length <= MAX_SECRET_BYTES && !/[\r\n]/.test(text)) return text
  throw new SourceError('secret_missing', 'the file with the credentials must have exactly one line')
}

/** Removes secrets from a text of a program or server, and what stands before `@` in its addresses. */
export function redact (text: string, secrets: readonly string[]): string {
  let clean = text.replace(/\/\/[^\s/@]*@/g, '//…@')
  for (const secret of secrets) {
    const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]
    for (const form of forms) if (form.length >= 4) clean = clean.replaceAll(form, '…')
  }
  return clean
}
