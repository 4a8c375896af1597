import { XMLParser } from 'fast-xml-parser'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { decodePercent } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'

/** Largest page of a listing, in bytes: 1,000 of the longest keys, percent-encoded, take half of it. */
export const MAX_PAGE_BYTES = 8 * 1_048_576

/** The end of a whole listing: without it, a listing that was cut would say that objects are gone. */
const END_OF_LISTING = /<(?:\/ListBucketResult\s*|ListBucketResult[^<>]*\/)>\s*$/

/** What a header can hold: the tag goes back to the service. */
const TAG = /^[\x20-\x7e]{1,1024}$/

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

const parser = new XMLParser({
  parseTagValue: false, trimValues: false, isArray: (name) => name === 'Contents' || name === 'ListBucketResult'
})

/**
 * Parses one page of a listing.
 * @throws SourceError for a page that contradicts itself: one that ends too early would remove skills
 */
export function parsePage (text: string): ListingPage {
  if (!END_OF_LISTING.test(text.slice(-1_024))) throw bad('the service gives no whole listing')
  const listing = listingIn(text)
  const { Contents: entries = [], EncodingType: encoding } = listing
  if (!Array.isArray(entries)) throw bad('the service gives no listing')
  const objects = entries.map((entry) => toObject(isJsonObject(entry) ? entry : {}, encoding === 'url'))
  return { objects, next: tokenAfter(listing, objects.length) }
}

function listingIn (text: string): JsonObject {
  let parsed: unknown
  try {
    parsed = parser.parse(text)
  } catch (cause) {
    throw bad('the service gives no listing', cause)
  }
  const listings = isJsonObject(parsed) ? parsed['ListBucketResult'] : undefined
  const [listing, second] = Array.isArray(listings) ? listings as readonly unknown[] : []
  if (second !== undefined || !isJsonObject(listing)) throw bad('the service gives no listing')
  return listing
}

function tokenAfter (listing: JsonObject, objects: number): string | undefined {
  const { IsTruncated: more, KeyCount: count, NextContinuationToken: next = '', CommonPrefixes: folders } = listing
  const isLast = String(more).toLowerCase() === 'false'
  if (!isLast && String(more).toLowerCase() !== 'true') throw bad('the service does not say whether its listing ends')
  if (isLast !== (next === '') || typeof next !== 'string') throw bad('the service does not go on with its listing')
  if (folders !== undefined || (count !== undefined && Number(count) !== objects)) {
    throw bad('the service lists fewer objects than it says')
  }
  return isLast ? undefined : next
}

function toObject ({ Key: key, ETag: etag, Size: size }: JsonObject, isEncoded: boolean): StoredObject {
  const tag = typeof etag === 'string' ? etag.replaceAll('&quot;', '"') : ''
  const decoded = typeof key === 'string' && isEncoded ? decodePercent(key.replaceAll('+', ' ')) : key
  if (typeof decoded !== 'string' || !TAG.test(tag) || !/^\d+$/.test(String(size))) {
    throw bad('the service lists an object without a key, tag or size that can be used')
  }
  return { key: decoded, etag: tag, size: Number(size) }
}

function bad (sentence: string, cause?: unknown): SourceError {
  return new SourceError('bad_answer', sentence, { cause })
}
