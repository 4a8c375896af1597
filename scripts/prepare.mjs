// Builds where npm installs from git: it clones into its cache and runs no other script there. pre-commit does so.
import { execSync } from 'node:child_process'

if (process.cwd().includes('_cacache')) execSync('npm run build', { stdio: 'inherit' })
