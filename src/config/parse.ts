import { resolve } from 'node:path'
import { isAddress, outlineOf, parseAddress } from '../sources/address/address.ts'
import { AddressError } from '../sources/source-error.ts'
import { ConfigError } from './setting.ts'

export const MAX_PORT = 65_535
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]])

export function parseFolder (text: string, cwd: string): string | undefined {
  return text === '' ? undefined : resolve(cwd, text)
}

/** A folder as an absolute path; the address of a source as it is. An address may hold a secret: only its host is quoted. */
export function parseFolderOrAddress (text: string, cwd: string): string | undefined {
  if (!isAddress(text)) return parseFolder(text, cwd)
  try {
    parseAddress(text)
  } catch (error) {
    throw error instanceof AddressError ? new ConfigError(`the address ${outlineOf(text)} cannot be used: ${error.message}`, { cause: error }) : error
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

function countUpTo (max: number): (text: string) => number | undefined {
  return (text) => {
    const count = parseCount(text)
    return count !== undefined && count <= max ? count : undefined
  }
}

/** An hour: nobody waits longer for a process, or for a cache. */
export const MAX_DELAY_SECONDS = 3_600
export const parseDelay = countUpTo(MAX_DELAY_SECONDS)

/** Two weeks: a timer of Node takes less than twice that. */
export const MAX_KEEP_SECONDS = 1_209_600
export const parseKeepSeconds = countUpTo(MAX_KEEP_SECONDS)

export const parsePort = countUpTo(MAX_PORT)

/** Without the slash at the end. */
export function parseUrl (text: string): string | undefined {
  if (!/^https?:\/\/[^\s?#@"\\]+$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).href.replace(/\/$/, '')
}
