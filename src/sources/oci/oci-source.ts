import { DIGEST, lastPart, parsePath, PATH_SETTING, splitAddress, withoutKeys } from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'

export interface OciSource extends SourceCommon {
  readonly kind: 'oci'
  /** Host and port. */
  readonly registry: string
  readonly repository: string
  /** A tag, or `sha256:<hex>`. */
  readonly reference: string
  readonly path: string
}

const REPOSITORY = /^[a-z\d]+(?:[._-]+[a-z\d]+)*(?:\/[a-z\d]+(?:[._-]+[a-z\d]+)*)*$/
const TAG = /^\w[\w.-]{0,127}$/

export const ociKind: SourceKind<OciSource> = {
  kind: 'oci',
  protocols: ['oci:'],
  forms: ['oci://'],
  description: 'An artifact of a registry: oci://host/name:tag',
  settings: { path: PATH_SETTING },
  parse: ({ base, fragment }) => artifact(base, fragment),
  configure: (address, { path }) => artifact(splitAddress(withoutKeys(address)).base, path),
  identity: ({ registry, repository, reference, path }) => [registry, repository, reference, path]
}

function artifact (text: string, path = ''): OciSource {
  const [, registry = '', rest = ''] = /^oci:\/\/([^/@]+)\/(.+)$/.exec(text) ?? []
  const [, repository = '', tag, digest] = /^([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(rest) ?? []
  const host = URL.canParse(`https://${registry}`) ? new URL(`https://${registry}`).hostname : ''
  if (host === '' || !REPOSITORY.test(repository)) {
    throw new AddressError('an address of a registry is oci://host/name:tag or oci://host/name@sha256:…')
  }
  const reference = digest ?? tag
  if (reference === undefined) throw new AddressError('an oci:// address needs a tag or a digest: there is no default')
  if (digest === undefined ? !TAG.test(reference) : !DIGEST.test(reference)) {
    throw new AddressError('an address of a registry ends with :tag or @sha256: and 64 hexadecimal digits')
  }
  const name = lastPart(repository)
  return { kind: 'oci', name, layout: 'auto', registry, repository, reference, path: parsePath(path) }
}
