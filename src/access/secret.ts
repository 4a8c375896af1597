import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { SECRET_PREFIXES } from '../secrets.ts'

/** Kind of a secret. A token gives access to the API, a link to the discovery documents below a path. */
export type SecretKind = keyof typeof SECRET_PREFIXES

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** 30 of 62 characters are 178 random bits. */
const RANDOM_CHARACTERS = 30
const CHECKSUM_CHARACTERS = 8

/** Creates a secret: a prefix that scanners find, random characters, and a CRC-32 that shows a typing mistake. */
export function createSecret (kind: SecretKind): string {
  const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  return withChecksum(SECRET_PREFIXES[kind] + random)
}

/** Returns whether a text has the prefix of a secret, but a wrong checksum. */
export function isDamaged (secret: string): boolean {
  const begins = Object.values(SECRET_PREFIXES).some((prefix) => secret.startsWith(prefix))
  return begins && withChecksum(secret.slice(0, -CHECKSUM_CHARACTERS)) !== secret
}

function withChecksum (body: string): string {
  return body + crc32(body).toString(16).padStart(CHECKSUM_CHARACTERS, '0')
}

/** Returns the SHA-256 of a secret in hex, for the access file. A slow hash adds nothing to 178 random bits. */
export function digestOf (secret: string): string {
  return hash('sha256', secret, 'hex')
}
