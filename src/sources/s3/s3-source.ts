import { withoutEndSlashes } from '../../core/shared/text.ts'
import { type Address, decode, isAtLoopback, lastPart, requireNoCredentials, splitAddress } from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'

export interface S3Source extends SourceCommon {
  readonly kind: 's3'
  readonly bucket: string
  /** Without a slash at the end. */
  readonly prefixPath: string
  /** Default: Amazon's of the region. */
  readonly endpoint?: string
  readonly region?: string
  /** Key below the prefix, written last by the upload: only its change is looked for. */
  readonly marker?: string
}

const BUCKET = /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/

export const s3Kind: SourceKind<S3Source> = {
  kind: 's3',
  protocols: ['s3:'],
  forms: ['s3://'],
  description: 'A bucket: s3://bucket/prefix',
  settings: {
    endpoint: { description: 's3: the address of the service; default: Amazon' },
    region: { description: 's3: default us-east-1' },
    marker: { description: 's3: a key that is written last; only its change is looked for' }
  },
  parse: bucket,
  configure: (address, { endpoint, region, marker }) => ({
    ...bucket(splitAddress(address)),
    ...endpoint !== undefined && { endpoint: checkEndpoint(endpoint) },
    ...region !== undefined && { region },
    ...marker !== undefined && { marker }
  }),
  identity: ({ endpoint, region, bucket, prefixPath }) => [endpoint, region, bucket, prefixPath]
}

/** @throws AddressError */
function checkEndpoint (text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isAtLoopback(url))
  if (!isSafe || url.username !== '' || url.password !== '') {
    throw new AddressError('the endpoint of a bucket is an https:// address without credentials')
  }
  return text
}

function bucket ({ url, fragment }: Address): S3Source {
  requireNoCredentials(url)
  const { protocol, hostname, pathname, search } = url
  if (protocol !== 's3:' || !BUCKET.test(hostname) || search !== '' || fragment !== undefined) {
    throw new AddressError('an address of a bucket is s3://bucket/prefix')
  }
  const prefixPath = withoutEndSlashes(decode(pathname)).replace(/^\/+/, '')
  const name = prefixPath === '' ? hostname : lastPart(prefixPath)
  return { kind: 's3', name, layout: 'auto', bucket: hostname, prefixPath }
}
