/**
 * What may not stand in the plain `filename`, or is read differently by different clients there (RFC 6266 appendix D).
 */
const UNSAFE = /[^ -~]|["\\%]/gu
/** What `encodeURIComponent` leaves although it is not an `attr-char` of RFC 8187. */
const NOT_ATTR_CHAR = /['()*]/g

/** `Content-Disposition` of a file to be saved under a name of any characters, well-formed Unicode (RFC 6266). */
export function attachment (filename: string): string {
  const encoded = encodeURIComponent(filename).replace(
    NOT_ATTR_CHAR, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  )
  return `attachment; filename="${filename.replace(UNSAFE, '_')}"; filename*=UTF-8''${encoded}`
}
