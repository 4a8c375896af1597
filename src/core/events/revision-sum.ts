import { hash } from 'node:crypto'

const BITS = 256
const HEX_DIGITS = BITS / 4

/** What `RevisionSum.text` looks like. */
export const CATALOG_REVISION = /^[\da-f]{64}$/

/**
 * One revision of many skills: the sum, modulo 2^256, of the SHA-256 of `name NUL revision` of each, as 64 hex
 * digits. Equal skills have an equal sum in any order, and a change of one skill costs two hashes among any number of
 * them. The sum serves to compare replicas and to resume; for proof of content take the digests of the skills
 * themselves.
 */
export class RevisionSum {
  #sum = 0n
  #text: string | undefined

  get text (): string {
    this.#text ??= this.#sum.toString(16).padStart(HEX_DIGITS, '0')
    return this.#text
  }

  /** @param revision undefined for a skill that has none: its folder may not be read, or is too large */
  add (name: string, revision: string | undefined): void {
    this.#set(this.#sum + hashOf(name, revision))
  }

  remove (name: string, revision: string | undefined): void {
    this.#set(this.#sum - hashOf(name, revision))
  }

  #set (sum: bigint): void {
    this.#sum = BigInt.asUintN(BITS, sum)
    this.#text = undefined
  }
}

function hashOf (name: string, revision = ''): bigint {
  return BigInt(`0x${hash('sha256', `${name}\0${revision}`)}`)
}
