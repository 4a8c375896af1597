import { isIPv4 } from 'node:net'

/** RFC 3986's host without percent-encoding and sub-delimiters, which no name that resolves has; RFC 9110's port. */
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d*)?$/i

/** The name in a `Host` value, in lower case and without the port; undefined when it is not a valid one. */
export function parseHost (value: string): string | undefined {
  return HOST.exec(value)?.[1]?.toLowerCase()
}

/** Loopback as a resolver would never disagree: `127.1` and `localhost.` are left out. */
export function isLoopback (name: string): boolean {
  return name === 'localhost' || name === '[::1]' || (name.startsWith('127.') && isIPv4(name))
}
