import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { SECRET_PREFIXES } from '../core/shared/text.ts'

/** What a secret opens: everything that its token may see, or the discovery documents below a path. */
export type SecretKind = keyof typeof SECRET_PREFIXES

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** 190 bits of randomness. */
const RANDOM_CHARACTERS = 32

/** 62 to this power is more than a CRC-32. */
const CHECKSUM_CHARACTERS = 6

/** A new secret in GitHub's form: scanners find it, and its checksum shows a typo without a look-up. */
export function createSecret (kind: SecretKind): string {
  const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  const body = SECRET_PREFIXES[kind] + random
  return body + checksumOf(body)
}

/** What the access file holds of a secret: SHA-256 in hex. A slow hash adds nothing to 190 random bits. */
export function digestOf (secret: string): string {
  return hash('sha256', secret, 'hex')
}

function checksumOf (body: string): string {
  let value = crc32(body)
  let text = ''
  for (let count = 0; count < CHECKSUM_CHARACTERS; count++) {
    text = (ALPHABET[value % ALPHABET.length] ?? '') + text
    value = Math.floor(value / ALPHABET.length)
  }
  return text
}
