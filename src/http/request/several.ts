import type { IncomingMessage } from 'node:http'

/** Whether a header has several lines, of which Node keeps the first or joins all. @param name in lower case */
export function hasSeveral ({ rawHeaders }: IncomingMessage, name: string): boolean {
  return rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === name).length > 1
}
