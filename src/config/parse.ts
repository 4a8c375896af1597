import { resolve } from 'node:path'
import { isAddress, outlineOf, parseAddress } from '../sources/address/address.ts'
import { AddressError } from '../sources/source-error.ts'
import { ConfigError } from './setting.ts'

export function parseFolder (text: string, cwd: string): string | undefined {
  return text === '' ? undefined : resolve(cwd, text)
}

/** A folder as an absolute path; the address of a source as it is. Errors quote the host of an address only. */
export function parseFolderOrAddress (text: string, cwd: string): string | undefined {
  if (!isAddress(text)) return parseFolder(text, cwd)
  try {
    parseAddress(text)
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    throw new ConfigError(`the address ${outlineOf(text)} cannot be used: ${error.message}`, { cause: error })
  }
  return text
}

/** Segments of characters that nobody encodes, no dot segments. */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)*\/?$/

/** Without the slash at the end, which `/` is too. */
export function parsePath (text: string): string | undefined {
  return text.startsWith('/') && PATH.test(text) ? text.replace(/\/$/, '') : undefined
}

/** Up to fifteen digits, which a number holds exactly. */
export function parseCount (text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined
}

/** Reads whole numbers up to a limit. */
export function upTo (max: number): (text: string) => number | undefined {
  return (text) => {
    const count = parseCount(text)
    return count !== undefined && count <= max ? count : undefined
  }
}

/** Without the slash at the end. */
export function parseUrl (text: string): string | undefined {
  if (!/^https?:\/\/[^\s?#@"\\]+$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).href.replace(/\/$/, '')
}

/** A `%` of a password is `%25`. */
export function parseRedis (text: string): string | undefined {
  if (!/^rediss?:\/\/\S+$/.test(text) || !URL.canParse(text)) return undefined
  try {
    return decodeURIComponent(text) && text
  } catch {
    return undefined
  }
}
