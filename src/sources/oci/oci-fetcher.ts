import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import type { Environment } from '../../config/setting.ts'
import { DIGEST } from '../address/parts.ts'
import { isArchive, unpackArchive } from '../archive/unpack.ts'
import { UnpackedFiles, WHITE_OUT } from '../archive/unpacked-files.ts'
import { MAX_ARCHIVE_BYTES } from '../archive/archive-fetcher.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import { quotePath } from '../../core/shared/paths.ts'
import { storedFiles } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'
import type { OciSource } from './oci-source.ts'
import { type Descriptor, Registry } from './registry.ts'

const INTERVAL_MS = 60_000
const MAX_LAYERS = 100
const MAX_MANIFESTS = 2_000
const TITLE = 'org.opencontainers.image.title'
/** Set by ORAS for a folder that it packed: the layer has the folder's name as its title. */
const UNPACK = 'io.deis.oras.content.unpack'
/** The configuration of an image for containers. */
const IMAGE_CONFIG = /^application\/vnd\.(?:oci\.image\.config|docker\.container\.image)\.v1\+json$/
const TAR_LAYER = /[./+]tar(?:[.+](?:gzip|zstd))?$/

interface Layer extends Descriptor {
  readonly mediaType: string
  readonly title: string | undefined
  readonly isPacked: boolean
  /** Whether it lies upon the layers before it, as those of an image do. */
  readonly isUpon: boolean
}

/**
 * Pulls an artifact by its digest. There is no agreed format of skills, so that layers are read by rule: archives are
 * unpacked, and other layers with a title are files. A layout then finds the skills.
 */
export function createOciFetcher (source: OciSource, env: Environment): Fetcher {
  return {
    intervalMs: INTERVAL_MS,
    async fetch ({ known, signal, tmp }: FetchOptions): Promise<Fetched | undefined> {
      const { reference, path } = source
      const isPinned = reference.startsWith('sha256:')
      const registry = new Registry(source, env, signal)
      const digest = isPinned ? reference : await registry.digestOf(reference)
      if (known?.['digest'] === digest) return undefined
      const files = await UnpackedFiles.create(tmp, signal, path)
      let bytes = 0
      const layers = (await layersOf(registry, digest)).filter(({ mediaType, title, isPacked }) =>
        TAR_LAYER.test(mediaType) || title !== undefined || isPacked)
      if (layers.length === 0) {
        const sentence = 'the artifact has no layer that is a tar, tar.gz or tar.zst archive, or a file with a title'
        throw new SourceError('bad_archive', sentence)
      }
      for (const [index, layer] of layers.entries()) {
        bytes += layer.size
        if (bytes > MAX_ARCHIVE_BYTES) {
          throw new SourceError('too_large', `the artifact is larger than ${MAX_ARCHIVE_BYTES} bytes`)
        }
        const blob = join(tmp, `layer-${index}`)
        await registry.saveBlob(layer, blob)
        if (layer.isUpon) files.beginLayer()
        await unpackLayer(layer, blob, files, signal)
        await rm(blob)
      }
      const unpacked = files.files(false)
      const whiteOut = unpacked.find(({ path }) => WHITE_OUT.test(path))
      if (whiteOut !== undefined) {
        const sentence = `the artifact is refused: ${quotePath(whiteOut.path)} takes away what another layer has`
        throw new SourceError('refused_tree', sentence)
      }
      const revision = isPinned ? digest : `${reference}@${digest}`
      return { revision, memory: { digest }, files: storedFiles(unpacked), path }
    }
  }
}

async function unpackLayer (layer: Layer, blob: string, files: UnpackedFiles, signal: AbortSignal): Promise<void> {
  const { title, size } = layer
  if (title === undefined || await isToUnpack(layer, title, blob)) {
    await unpackArchive(blob, files, signal)
  } else {
    files.addPackedBytes(size)
    await files.addFile(title, createReadStream(blob))
  }
}

/** ORAS pushes a plain file under the type of a tar layer, unless another is given. */
async function isToUnpack ({ mediaType, isPacked }: Layer, title: string, blob: string): Promise<boolean> {
  return isPacked || (TAR_LAYER.test(mediaType) && !title.includes('/') && await isArchive(blob))
}

/** The layers of a manifest, or of all manifests of an index. */
async function layersOf (registry: Registry, digest: string): Promise<Layer[]> {
  const top = asObject(await registry.manifest(digest))
  if (!Array.isArray(top['manifests'])) return manifestLayers(top)
  const entries = top['manifests'].filter(isJsonObject)
  if (entries.length > MAX_MANIFESTS) {
    throw new SourceError('too_large', `the artifact has more than ${MAX_MANIFESTS} manifests`)
  }
  // Of an image for several platforms, each has the same files.
  const wanted = entries.some(({ platform }) => platform !== undefined)
    ? entries.filter(({ platform }) => !isJsonObject(platform) || platform['os'] !== 'unknown').slice(0, 1)
    : entries
  const layers: Layer[] = []
  for (const entry of wanted) {
    const manifest = asObject(await registry.manifest(descriptorOf(entry).digest))
    if (manifest['manifests'] !== undefined) {
      throw new SourceError('refused_tree', 'the artifact has an index in an index')
    }
    layers.push(...manifestLayers(manifest, wanted.length === 1))
  }
  return layers
}

/** @param isAlone whether there is no other manifest, whose files would be replaced */
function manifestLayers (manifest: JsonObject, isAlone = true): Layer[] {
  const { schemaVersion, layers, config } = manifest
  const isImage = isAlone && isJsonObject(config) &&
    typeof config['mediaType'] === 'string' && IMAGE_CONFIG.test(config['mediaType'])
  if (schemaVersion !== 2 || !Array.isArray(layers)) {
    throw new SourceError('bad_answer', 'the registry gives no manifest of schema 2')
  }
  if (layers.length > MAX_LAYERS) throw new SourceError('too_large', `the artifact has more than ${MAX_LAYERS} layers`)
  return layers.map((layer) => {
    const value = asObject(layer)
    if (value['urls'] !== undefined) throw new SourceError('refused_tree', 'the artifact has layers at other addresses')
    const { annotations, mediaType } = value
    const { [TITLE]: title, [UNPACK]: unpack } = isJsonObject(annotations) ? annotations : {}
    return {
      ...descriptorOf(value),
      mediaType: typeof mediaType === 'string' ? mediaType : '',
      title: typeof title === 'string' ? title : undefined,
      isPacked: unpack === 'true',
      isUpon: isImage && title === undefined
    }
  })
}

function descriptorOf ({ digest, size }: JsonObject): Descriptor {
  const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
  if (typeof digest !== 'string' || !DIGEST.test(digest) || !isSize) {
    throw new SourceError('bad_answer', 'the manifest of the artifact has a bad descriptor')
  }
  return { digest, size }
}

function asObject (value: unknown): JsonObject {
  if (!isJsonObject(value)) {
    throw new SourceError('bad_answer', 'the manifest of the artifact has another shape than it should')
  }
  return value
}
