import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { dsse } from '@sigstore/core'
import { reasonOf, replaceEntry } from '../operator/files.ts'
import { ConfigError } from '../operator/setting.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { createStatement, formatBundle, PAYLOAD_TYPE, SIGNATURE_FILE } from './bundle.ts'
import { certificatesIn, hashOf, hintOf } from './signers.ts'
import { unreadPart } from './verify.ts'

/** A private key and, if the trust file knows the signer by an issuer, its certificates, the leaf first. */
type SigningKey = ReturnType<typeof parseSigningKey>

/** @throws ConfigError if the key or the certificates cannot sign */
export function parseSigningKey (keyText: string, chain?: string) {
  const key = parse('--key must be a private key in PEM without a password', () => createPrivateKey(keyText))
  if (hashOf(key) === undefined) throw new ConfigError('--key must be one of P-256, P-384 or P-521')
  const certificates = parse('--chain must hold certificates in PEM',
    () => chain === undefined ? [] : certificatesIn(chain))
  if (certificates[0]?.checkPrivateKey(key) !== false) return { key, certificates }
  throw new ConfigError('--chain must begin with the certificate of the key')
}

function parse<T> (sentence: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ConfigError(sentence, { cause: error })
  }
}

/**
 * Signs skills of a folder: writes SIGNATURE_FILE into each, or into none if one of them cannot be signed.
 * @throws ConfigError
 */
export async function signSkills (
  folder: string, skills: SkillManager, names: readonly string[], key: SigningKey
): Promise<void> {
  const signatures = new Map<string, string>()
  for (const name of names) {
    signatures.set(name, await skills.read(name, (state) => signatureOf(state, key)))
  }
  for (const [name, text] of signatures) {
    const path = `${folder}/${name}/${SIGNATURE_FILE}`
    await replaceEntry(path, text).catch((cause: unknown) => {
      throw new ConfigError(`${path} cannot be written (${reasonOf(cause)})`, { cause })
    })
  }
}

/** Makes the text of a signature over all files of a skill. */
async function signatureOf (state: SkillState, { key, certificates }: SigningKey): Promise<string> {
  const manifest = await state.manifest()
  const name = JSON.stringify(manifest.skill_name)
  const unread = await unreadPart(state)
  if (unread !== undefined) throw new ConfigError(`the skill ${name} cannot be signed: ${unread}`)
  const payload = createStatement(manifest)
  if (payload === undefined) throw new ConfigError(`the skill ${name} has no files`)
  return formatBundle({
    payload,
    signature: sign(hashOf(key), dsse.preAuthEncoding(PAYLOAD_TYPE, payload), key),
    keyHint: certificates.length === 0 ? hintOf(createPublicKey(key)) : undefined,
    certificates: certificates.map(({ raw }) => raw)
  })
}
