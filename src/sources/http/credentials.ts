import type { Environment } from '../../operator/setting.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { readSecret } from '../secrets.ts'

export type RequestHeaders = Readonly<Record<string, string>>

/** A token as a header, or a password where the settings have a user name. */
export async function credentialsOf (auth: SourceAuth, env: Environment): Promise<RequestHeaders> {
  const secret = await readSecret(auth, env)
  if (secret === undefined) return {}
  return auth.username === undefined ? { authorization: `Bearer ${secret}` } : basic(auth.username, secret)
}

export function basic (username: string, secret: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}` }
}
