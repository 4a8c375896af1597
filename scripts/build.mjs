// Builds dist/: a module for each file of src, with its types, and what is not TypeScript.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
rmSync('dist', { recursive: true, force: true })
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
cpSync('src/cli/skillserve.cjs', 'dist/cli/skillserve.cjs')
chmodSync('dist/cli/skillserve.cjs', 0o755)
cpSync('src/ui/public', 'dist/ui/public', { recursive: true })
writeFileSync('dist/commit', `${process.env.REVISION || commit()}\n`)

/** Returns the commit of the checkout, or an empty text outside of one. */
function commit () {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}
