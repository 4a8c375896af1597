import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import Negotiator from 'negotiator'
import { isTextType } from '../core/read/media-type.ts'
import type { Encoding } from './etag.ts'

type Compress = typeof zlib.brotliCompress
type CreateCompress = typeof zlib.createBrotliCompress

declare module 'node:zlib' {
  // Since Node 22.15; the types are those of Node 20.
  const zstdCompress: Compress | undefined
  const createZstdCompress: CreateCompress | undefined
  const createZstdDecompress: ((options: { readonly params: Readonly<Record<number, number>> }) => Transform) | undefined
}

interface Codec {
  compress (body: Buffer | string): Promise<Buffer>
  stream (): Transform
}

/** Quality 4 takes the time of gzip's default and leaves a tenth less; the library's default, 11, takes 50 times as long. */
const BROTLI = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }

const brotli = promisify<Buffer | string, zlib.BrotliOptions, Buffer>(zlib.brotliCompress)
const { zstdCompress, createZstdCompress } = zlib

/** In the order of the service's preference. */
const codecs: ReadonlyMap<Encoding, Codec> = new Map([
  ['br', { compress: (body: Buffer | string) => brotli(body, BROTLI), stream: () => zlib.createBrotliCompress(BROTLI) }],
  ...zstdCompress === undefined || createZstdCompress === undefined
    ? []
    : [['zstd', { compress: promisify<Buffer | string, Buffer>(zstdCompress), stream: () => createZstdCompress() }] as const],
  ['gzip', { compress: promisify<Buffer | string, Buffer>(zlib.gzip), stream: () => zlib.createGzip() }]
])
const available = [...codecs.keys()]

export function codecOf (encoding: Encoding): Codec {
  const codec = codecs.get(encoding)
  if (codec === undefined) throw new Error(`no codec for ${encoding}`)
  return codec
}

/** Longest `Accept-Encoding` that is parsed, in characters. Browsers send about 25. */
const MAX_CHARACTERS = 256

/** Browsers send one and the same header with each request, and programs too. */
const negotiated = new Map<string, Encoding | undefined>()
const MAX_NEGOTIATED = 64

/** The encoding that an `Accept-Encoding` header prefers; of equal weights the service's own preference. */
export function preferredEncoding (header: string): Encoding | undefined {
  if (header.length > MAX_CHARACTERS) return undefined
  let encoding = negotiated.get(header)
  if (encoding === undefined && !negotiated.has(header)) {
    encoding = negotiate(header)
    if (negotiated.size >= MAX_NEGOTIATED) negotiated.clear()
    negotiated.set(header, encoding)
  }
  return encoding
}

function negotiate (header: string): Encoding | undefined {
  // Negotiator prefers what comes first, and browsers begin with gzip. All other codings, such as identity, come last.
  const rank = (coding: string) => {
    const index = available.findIndex((name) => coding.trim().toLowerCase().startsWith(name))
    return index === -1 ? available.length : index
  }
  const sorted = header.split(',').sort((a, b) => rank(a) - rank(b)).join(',')
  const [first] = new Negotiator({ headers: { 'accept-encoding': sorted } }).encodings([...available, 'identity'])
  return available.find((name) => name === first)
}

/** Few: `Content-Type` is one of a small table, with or without a charset. */
const compressible = new Map<string, boolean>()

/** Whether bodies of this type become smaller. Not events, which have to go out one by one. */
export function isCompressible (contentType: string): boolean {
  let known = compressible.get(contentType)
  if (known === undefined) {
    const [type = ''] = contentType.toLowerCase().split(';', 1)
    known = isTextType(type.trim()) && !type.startsWith('image/') && type.trim() !== 'text/event-stream'
    compressible.set(contentType, known)
  }
  return known
}
