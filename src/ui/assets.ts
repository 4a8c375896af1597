import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const ASSETS_FOLDER = fileURLToPath(new URL('public/', import.meta.url))

const ASSET_NAMES = ['catalog.css', 'catalog.js', 'icon.svg'] as const

export type AssetName = typeof ASSET_NAMES[number]
export type Assets = Readonly<ReturnType<typeof readAssets>>

export function readAssets () {
  const all = createHash('sha256')
  for (const name of ASSET_NAMES) all.update(readFileSync(ASSETS_FOLDER + name))
  const script = createHash('sha256').update(readFileSync(`${ASSETS_FOLDER}catalog.js`))
  return {
    /** Path of their folder below the prefix of the service. It changes with their content. */
    path: `ui/assets/${all.digest('hex').slice(0, 16)}/`,
    /** Digest of the script, as in `integrity` and in a Content-Security-Policy: `sha256-…`. */
    scriptIntegrity: `sha256-${script.digest('base64')}`
  }
}
