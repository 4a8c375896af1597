import { isUtf8 } from 'node:buffer'

const MAX_CHARACTER_BYTES = 4
const NOTHING = Buffer.alloc(0)

/** Whether bytes that come in pieces are UTF-8 together. */
export class Utf8Check {
  #isValid = true
  /** The beginning of a character that the next piece goes on with. */
  #rest = NOTHING

  add (piece: Buffer): void {
    if (!this.#isValid) return
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    const end = completeCharacters(bytes)
    this.#isValid = isUtf8(bytes.subarray(0, end))
    this.#rest = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end))
  }

  /** Of all pieces so far. */
  get holds (): boolean {
    return this.#isValid && this.#rest.length === 0
  }
}

/** How many bytes the complete characters have: less than all where the last one is cut. */
export function completeCharacters (bytes: Buffer): number {
  for (let back = 1; back < MAX_CHARACTER_BYTES && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0
    if (length > back) return bytes.length - back
    if (length > 0) break
  }
  return bytes.length
}
