import { XMLParser } from 'fast-xml-parser'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { decodePercent } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'

/** Largest page of a listing, in bytes: 1,000 of the longest keys, percent-encoded, take half of it. */
export const MAX_PAGE_BYTES = 8 * 1_048_576

/**
 * Text that the parser gets at once, in characters, and thus the longest entry of an object: four times what the longest key takes.
 * A page that was made for it keeps the parser busy for seconds.
 */
const MAX_PIECE_CHARACTERS = 16_384

/** The end of a whole listing: without it, a listing that was cut would say that objects are gone. */
const END_OF_LISTING = /<(?:\/ListBucketResult\s*|ListBucketResult[^<>]*\/)>\s*$/

/** What a header can hold: the tag goes back to the service. */
const TAG = /^[\x20-\x7e]{1,1024}$/

const ENTRY_START = '<Contents>'
const ENTRY_END = '</Contents>'

export interface StoredObject {
  readonly key: string
  /** Says whether an object changed. It is not a digest of its bytes. */
  readonly etag: string
  readonly size: number
}

interface ListingPage {
  readonly objects: readonly StoredObject[]
  /** The token of the page that follows; undefined after the last one. */
  readonly next: string | undefined
}

/**
 * Parses one page of a listing, piece by piece.
 * @throws SourceError for a page that contradicts itself: one that ends too early would remove skills
 */
export async function parsePage (text: string): Promise<ListingPage> {
  if (!END_OF_LISTING.test(text.slice(-MAX_PIECE_CHARACTERS))) throw new SourceError('bad_answer', 'the service gives no whole listing')
  const { frame, pieces } = cut(text)
  const listing = parse(frame)['ListBucketResult']
  if (!isJsonObject(listing) || 'Contents' in listing) throw noListing()
  const isEncoded = listing['EncodingType'] === 'url'
  const objects: StoredObject[] = []
  for (const piece of pieces) {
    const { Contents: entries } = asObject(parse(`<Entries>${piece}</Entries>`)['Entries'])
    for (const entry of Array.isArray(entries) ? entries : []) objects.push(toObject(asObject(entry), isEncoded))
    await yieldIfNeeded()
  }
  return { objects, next: tokenAfter(listing, objects.length) }
}

/** The entries of objects in pieces that the parser may get, and the text around them. */
function cut (text: string): { readonly frame: string, readonly pieces: readonly string[] } {
  const pieces: string[] = []
  let frame = ''
  let piece = ''
  let end = 0
  for (let start = text.indexOf(ENTRY_START); start !== -1; start = text.indexOf(ENTRY_START, end)) {
    frame += text.slice(end, start)
    const last = text.indexOf(ENTRY_END, start)
    if (last === -1) throw noListing()
    end = last + ENTRY_END.length
    if (end - start > MAX_PIECE_CHARACTERS) throw tooLong()
    if (piece.length + end - start > MAX_PIECE_CHARACTERS) {
      pieces.push(piece)
      piece = ''
    }
    piece += text.slice(start, end)
  }
  frame += text.slice(end)
  if (frame.length > MAX_PIECE_CHARACTERS) throw tooLong()
  return { frame, pieces: [...pieces, piece] }
}

function parse (text: string): JsonObject {
  const parser = new XMLParser({ parseTagValue: false, trimValues: false, isArray: (name) => name === 'Contents' })
  try {
    return asObject(parser.parse(text))
  } catch (cause) {
    throw noListing(cause)
  }
}

function tokenAfter ({ IsTruncated: isTruncated, KeyCount: count, NextContinuationToken: next = '', CommonPrefixes: folders }: JsonObject, objects: number): string | undefined {
  const isLast = String(isTruncated).toLowerCase() === 'false'
  if (!isLast && String(isTruncated).toLowerCase() !== 'true') throw new SourceError('bad_answer', 'the service does not say whether its listing ends')
  if (isLast !== (next === '') || typeof next !== 'string') throw new SourceError('bad_answer', 'the service does not go on with its listing')
  if (folders !== undefined || (count !== undefined && Number(count) !== objects)) throw new SourceError('bad_answer', 'the service lists fewer objects than it says')
  return isLast ? undefined : next
}

function toObject ({ Key: key, ETag: etag, Size: size }: JsonObject, isEncoded: boolean): StoredObject {
  const tag = typeof etag === 'string' ? etag.replaceAll('&quot;', '"') : ''
  if (typeof key !== 'string' || !TAG.test(tag) || !/^\d+$/.test(String(size))) throw new SourceError('bad_answer', 'the service lists an object without a key, tag or size that can be used')
  return { key: isEncoded ? decode(key) : key, etag: tag, size: Number(size) }
}

function decode (key: string): string {
  const decoded = decodePercent(key.replaceAll('+', ' '))
  if (decoded === undefined) throw new SourceError('bad_answer', 'the service lists a key that cannot be read')
  return decoded
}

function asObject (value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

function noListing (cause?: unknown): SourceError {
  return new SourceError('bad_answer', 'the service gives no listing', { cause })
}

function tooLong (): SourceError {
  return new SourceError('bad_answer', `a part of the listing has more than ${MAX_PIECE_CHARACTERS} characters`)
}
