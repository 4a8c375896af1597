// Builds where npm installs from git, as pre-commit does: npm clones into its cache and runs no other script there, and
// with --global it installs no development dependency.
import { execSync } from 'node:child_process'
import { existsSync } from 'node:fs'

if (process.cwd().includes('_cacache') && !existsSync('dist')) {
  execSync('npm ci --ignore-scripts --global=false && npm run build', { stdio: 'inherit' })
}
