import { createHash } from 'node:crypto'

/** `sha256:<hex>` of bytes, or of a text in UTF-8. */
export function sha256 (bytes: Uint8Array | string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
