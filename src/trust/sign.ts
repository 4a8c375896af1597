import { createPrivateKey, createPublicKey, type KeyObject, sign, type X509Certificate } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { whyUnwritable } from '../config/files/files.ts'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { formatBundle, SIGNATURE_FILE, signedBytes } from './bundle.ts'
import { subjectOf } from './check-signature.ts'
import { certificatesIn, hashOf, hintOf } from './signers.ts'
import { createStatement, isNeverSigned } from './statement.ts'
import { type ListOptions, unreadPart } from './verify.ts'

/** Why a skill is not signed. The message is one line. */
export class SigningError extends Error {}

/** Why a file cannot sign. The message goes on after the name of the file. */
export class KeyError extends Error {
  readonly part: 'key' | 'chain'

  constructor (part: 'key' | 'chain', message: string, options?: ErrorOptions) {
    super(message, options)
    this.part = part
  }
}

/** What signs: a private key, and its certificates where verifiers know the signer by a root certificate. */
interface SigningKey {
  readonly key: KeyObject
  /** The leaf first. */
  readonly certificates: readonly X509Certificate[]
}

/** @throws KeyError */
export function parseSigningKey (keyText: string, certificatesText?: string): SigningKey {
  const key = parse('key', 'must be a private key in PEM without a password', () => createPrivateKey(keyText))
  if (hashOf(key) === undefined) throw new KeyError('key', 'must be one of P-256, P-384 or P-521')
  if (certificatesText === undefined) return { key, certificates: [] }
  const certificates = parse('chain', 'must hold certificates in PEM', () => certificatesIn(certificatesText) ?? [])
  if (certificates[0]?.checkPrivateKey(key) === true) return { key, certificates }
  throw new KeyError('chain', 'must begin with the certificate of the key')
}

function parse<T> (part: KeyError['part'], message: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new KeyError(part, message, { cause: error })
  }
}

/**
 * Signs skills of a folder: writes SIGNATURE_FILE into each, and nothing unless all of them can be signed.
 * @throws SigningError
 */
export async function signSkills (
  folder: string, skills: SkillManager, names: readonly string[], key: SigningKey,
  onProgress?: ListOptions['onProgress']
): Promise<void> {
  const signatures = new Map<string, string>()
  for (const name of names) {
    onProgress?.(signatures.size, names.length)
    signatures.set(name, await skills.read(name, async (state) => {
      const subject = await subjectOf(state)
      checkSignable(subject.manifest, await unreadPart(state))
      return signatureOf(subject.manifest, await subject.hasLinks(), key)
    }))
  }
  for (const [name, text] of signatures) {
    const temporary = `${folder}/${name}/.#${SIGNATURE_FILE}`
    try {
      await writeFile(temporary, text)
      await rename(temporary, `${folder}/${name}/${SIGNATURE_FILE}`)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      const reason = whyUnwritable(error)
      throw new SigningError(`${folder}/${name}/${SIGNATURE_FILE} cannot be written (${reason})`, { cause: error })
    }
  }
}

/** The text of a signature over all files of a skill. */
function signatureOf (manifest: Manifest, hasLinks: boolean, { key, certificates }: SigningKey): string {
  const payload = createStatement(manifest, hasLinks)
  return formatBundle({
    payload,
    signature: sign(hashOf(key), signedBytes(payload), key),
    keyHint: certificates.length === 0 ? hintOf(createPublicKey(key)) : undefined,
    certificates: certificates.map(({ raw }) => raw)
  })
}

function checkSignable ({ skill_name: name, files }: Manifest, unread: string | undefined): void {
  if (unread !== undefined) throw new SigningError(`the skill ${JSON.stringify(name)} cannot be signed: ${unread}`)
  if (files.some(({ path }) => path !== SIGNATURE_FILE && !isNeverSigned(path))) return
  throw new SigningError(`the skill ${JSON.stringify(name)} has no files`)
}
