import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, extname } from 'node:path/posix'

/** A file of the pages themselves, under an address that changes with its content. */
export interface Asset {
  /** `catalog-0123456789abcdef.css` */
  readonly name: string
  readonly type: string
  readonly bytes: Buffer
  /** As of `integrity` and of a Content-Security-Policy: `sha256-…`. */
  readonly integrity: string
}

export interface Assets {
  readonly style: Asset
  readonly script: Asset
  readonly icon: Asset
  find (name: string): Asset | undefined
}

/** Beside this module in `src` and in `dist`, and beside the bundle's chunks, which hold this line too. */
const FOLDER = new URL('../ui/public/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}

const HASH_CHARACTERS = 16

/** Reads the files, which takes a millisecond, when the first page is asked for. */
export function readAssets (): Assets {
  const [style, script, icon] = [readAsset('catalog.css'), readAsset('catalog.js'), readAsset('icon.svg')]
  const byName = new Map([style, script, icon].map((asset) => [asset.name, asset]))
  return { style, script, icon, find: (name) => byName.get(name) }
}

function readAsset (file: string): Asset {
  const bytes = readFileSync(new URL(file, FOLDER))
  const extension = extname(file)
  const hash = createHash('sha256').update(bytes)
  return {
    name: `${basename(file, extension)}-${hash.copy().digest('hex').slice(0, HASH_CHARACTERS)}${extension}`,
    type: TYPES[extension] ?? 'application/octet-stream',
    bytes,
    integrity: `sha256-${hash.digest('base64')}`
  }
}
