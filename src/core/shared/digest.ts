import { hash } from 'node:crypto'

/** Returns `sha256:<hex>` of bytes, or of a text in UTF-8. */
export function sha256 (bytes: Uint8Array | string): string {
  return `sha256:${hash('sha256', bytes)}`
}
