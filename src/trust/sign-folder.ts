import { createPrivateKey, createPublicKey, type KeyObject, sign, type X509Certificate } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { whyUnwritable } from '../config/files/files.ts'
import { formatBundle, SIGNATURE_FILE, signedBytes } from './bundle.ts'
import { certificatesIn, hashOf, hintOf } from './signers.ts'
import { createStatement, isNeverSigned } from './statement.ts'
import { type ReadSkill, readSkills, type ListOptions } from './verify-folder.ts'

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
  const certificates = parse('chain', 'must hold certificates in PEM', () => certificatesIn(certificatesText ?? '') ?? [])
  if (certificatesText !== undefined && certificates[0]?.checkPrivateKey(key) !== true) throw new KeyError('chain', 'must begin with the certificate of the key')
  return { key, certificates }
}

function parse<T> (part: KeyError['part'], message: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new KeyError(part, message, { cause: error })
  }
}

/**
 * Signs all skills of a folder, or the one that the folder is: writes SIGNATURE_FILE into each.
 * @returns the names of the skills
 * @throws SigningError for a skill before anything is written, or for a signature that cannot be; FolderError
 */
export async function signFolder (path: string, key: SigningKey, list: Omit<ListOptions, 'linkTargets'> = {}): Promise<readonly string[]> {
  const skills = await readSkills(path, list)
  for (const skill of skills) checkSignable(skill)
  for (const { folder, ...skill } of skills) {
    const temporary = `${folder}/.#${SIGNATURE_FILE}`
    try {
      await writeFile(temporary, signSkill(skill, key))
      await rename(temporary, `${folder}/${SIGNATURE_FILE}`)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      throw new SigningError(`${folder}/${SIGNATURE_FILE} cannot be written (${whyUnwritable(error)})`, { cause: error })
    }
  }
  return skills.map(({ manifest }) => manifest.skill_name)
}

/** The text of a signature over all files of a skill. */
function signSkill ({ manifest, hasLinks }: Pick<ReadSkill, 'manifest' | 'hasLinks'>, { key, certificates }: SigningKey): string {
  const payload = createStatement(manifest, hasLinks)
  return formatBundle({
    payload,
    signature: sign(hashOf(key), signedBytes(payload), key),
    keyHint: certificates.length === 0 ? hintOf(createPublicKey(key)) : undefined,
    certificates: certificates.map(({ raw }) => raw)
  })
}

function checkSignable ({ manifest: { skill_name: name, files }, unread }: ReadSkill): void {
  if (unread !== undefined) throw new SigningError(`the skill ${JSON.stringify(name)} cannot be signed: ${unread}`)
  if (!files.some(({ path }) => path !== SIGNATURE_FILE && !isNeverSigned(path))) throw new SigningError(`the skill ${JSON.stringify(name)} has no files`)
}
