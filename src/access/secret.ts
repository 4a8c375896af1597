import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { SECRET_PREFIXES } from '../secrets.ts'

/** What a secret opens: everything that its token may see, or the discovery documents below a path. */
export type SecretKind = keyof typeof SECRET_PREFIXES

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** 178 bits of randomness. */
const RANDOM_CHARACTERS = 30

/** A new secret, which scanners find by its prefix, and whose CRC-32 shows a typo without a look-up. */
export function createSecret (kind: SecretKind): string {
  const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  const body = SECRET_PREFIXES[kind] + random
  return body + crc32(body).toString(16).padStart(8, '0')
}

/** What the access file holds of a secret: SHA-256 in hex. A slow hash adds nothing to 178 random bits. */
export function digestOf (secret: string): string {
  return hash('sha256', secret, 'hex')
}
