import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path/posix'
import { fileURLToPath } from 'node:url'

export const ASSETS_FOLDER = fileURLToPath(new URL('public/', import.meta.url))

const ASSET_NAMES = ['catalog.css', 'catalog.js', 'icon.svg'] as const

export type AssetName = typeof ASSET_NAMES[number]

export interface Assets {
  /** The name of a file in its address, which changes with its content: `catalog-0123456789abcdef.css`. */
  readonly nameOf: (file: AssetName) => string
  /** The file of a name in an address. */
  readonly find: (name: string) => AssetName | undefined
  /** Of the script, as in `integrity` and in a Content-Security-Policy: `sha256-…`. */
  readonly scriptIntegrity: string
}

const HASH_CHARACTERS = 16

export function readAssets (): Assets {
  const hashes = ASSET_NAMES.map((file) => createHash('sha256').update(readFileSync(ASSETS_FOLDER + file)).digest())
  const hashOf = (file: AssetName) => hashes[ASSET_NAMES.indexOf(file)] ?? Buffer.of()
  const nameOf = (file: AssetName) => {
    const extension = extname(file)
    return `${file.slice(0, -extension.length)}-${hashOf(file).toString('hex').slice(0, HASH_CHARACTERS)}${extension}`
  }
  return {
    nameOf,
    find: (name) => ASSET_NAMES.find((file) => nameOf(file) === name),
    scriptIntegrity: `sha256-${hashOf('catalog.js').toString('base64')}`
  }
}
