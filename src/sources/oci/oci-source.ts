import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { quotePath } from '../../core/shared/paths.ts'
import { DIGEST, PACKED_FILE } from '../address/address.ts'
import type { Fetched, FetchOptions, OciSource } from '../address/source-kind.ts'
import { MAX_ARCHIVE_BYTES, unpackArchive } from '../archive/unpack.ts'
import { MAX_ENTRIES, type SourceEntry, storedFiles } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'
import { createRegistry, type Descriptor, type Registry } from './registry.ts'

const MAX_LAYERS = 100
const MAX_MANIFESTS = 2_000

const TITLE = 'org.opencontainers.image.title'
/** Annotation of ORAS for a folder that it has packed; the title is the folder's name. */
const UNPACK = 'io.deis.oras.content.unpack'
/** A name with which an image layer deletes a file or folder of a lower layer. */
const WHITE_OUT = /(?:^|\/)\.wh\./
const TAR_LAYER = /[./+]tar(?:[.+]gzip)?$/
/** ORAS gives plain files the type of a tar layer, unless another is given. */
const ORAS_FILE = 'application/vnd.oci.image.layer.v1.tar'

interface Layer extends Descriptor {
  /** Path of the file, for a layer that is one file and not an archive. */
  readonly file: string | undefined
}

/**
 * Pulls an artifact by its digest. There is no common format for skills, so archives are unpacked, and other layers
 * with a title are files. A layout then finds the skills.
 */
export async function fetch (source: OciSource, options: FetchOptions): Promise<Fetched | undefined> {
  const { reference, path } = source
  const { known, signal, tmp, env } = options
  const isPinned = reference.startsWith('sha256:')
  const registry = createRegistry(source, env, signal)
  const digest = isPinned ? reference : await registry.digestOf(reference)
  if (known?.['digest'] === digest) return undefined
  const layers = await layersOf(registry, digest)
  if (layers.length === 0) {
    const sentence = 'the artifact has no layer that is a tar or tar.gz archive, or a file with a title'
    throw new SourceError('bad_archive', sentence)
  }
  const packedBytes = layers.reduce((sum, { size }) => sum + size, 0)
  if (packedBytes > MAX_ARCHIVE_BYTES) throw tooLarge(`${MAX_ARCHIVE_BYTES} bytes`)
  // A later layer replaces files of earlier ones, as in container images.
  const entries = new Map<string, SourceEntry>()
  let bytes = 0
  for (const [index, { file, ...layer }] of layers.entries()) {
    const blob = join(tmp, `layer-${index}`)
    await registry.saveBlob(layer, blob)
    const own: readonly SourceEntry[] = file === undefined
      ? await unpackArchive(blob, `${blob}-files`, signal, path)
      : [{ path: file, kind: 'file', id: layer.digest, size: layer.size, stored: blob }]
    if (file === undefined) await rm(blob)
    for (const entry of own) {
      bytes += entry.size
      entries.set(entry.path, entry)
    }
    if (bytes > MAX_PUBLISHED_BYTES) throw tooLarge(`${MAX_PUBLISHED_BYTES} bytes`)
    if (entries.size > MAX_ENTRIES) throw tooLarge(`${MAX_ENTRIES} files`)
  }
  const gone = [...entries.keys()].find((path) => WHITE_OUT.test(path))
  if (gone !== undefined) {
    const problem = `${quotePath(gone)} removes a file of another layer`
    throw new SourceError('refused_tree', `the artifact is refused: ${problem}`)
  }
  const revision = isPinned ? digest : `${reference}@${digest}`
  return { revision, memory: { digest }, files: storedFiles([...entries.values()]), path }
}

function tooLarge (limit: string): SourceError {
  return new SourceError('too_large', `the artifact has more than ${limit}`)
}

/** Returns the layers of a manifest, or those of all manifests of an index. */
async function layersOf (registry: Registry, digest: string): Promise<readonly Layer[]> {
  const top = await registry.manifest(digest)
  if (!Array.isArray(top['manifests'])) return manifestLayers(top)
  const entries = top['manifests'].filter(isJsonObject)
  if (entries.length > MAX_MANIFESTS) throw tooLarge(`${MAX_MANIFESTS} manifests`)
  // The platforms of an image all contain the same files, so one is enough.
  const wanted = entries.some(({ platform }) => platform !== undefined)
    ? entries.filter(({ platform }) => !isJsonObject(platform) || platform['os'] !== 'unknown').slice(0, 1)
    : entries
  const layers: Layer[] = []
  for (const entry of wanted) {
    layers.push(...manifestLayers(await registry.manifest(descriptorOf(entry).digest)))
  }
  return layers
}

function manifestLayers ({ schemaVersion, layers }: JsonObject): Layer[] {
  if (schemaVersion !== 2 || !Array.isArray(layers)) {
    throw new SourceError('bad_answer', 'the manifest of the artifact is not of schema version 2')
  }
  if (layers.length > MAX_LAYERS) throw tooLarge(`${MAX_LAYERS} layers`)
  return layers.filter(isJsonObject).flatMap((layer): Layer[] => {
    if (layer['urls'] !== undefined) throw new SourceError('refused_tree', 'the artifact has layers at other addresses')
    const { annotations } = layer
    const type = String(layer['mediaType'])
    const { [TITLE]: title, [UNPACK]: unpack } = isJsonObject(annotations) ? annotations : {}
    const isTar = TAR_LAYER.test(type)
    if (typeof title !== 'string') return isTar ? [{ ...descriptorOf(layer), file: undefined }] : []
    const isArchive = isTar && !title.includes('/') && (type !== ORAS_FILE || PACKED_FILE.test(title))
    return [{ ...descriptorOf(layer), file: isArchive || unpack === 'true' ? undefined : title }]
  })
}

function descriptorOf ({ digest, size }: JsonObject): Descriptor {
  const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
  if (typeof digest !== 'string' || !DIGEST.test(digest) || !isSize) {
    throw new SourceError('bad_answer', 'the manifest of the artifact has a bad descriptor')
  }
  return { digest, size }
}
