import { existsSync } from 'node:fs'
import t from 'tap'

const FILES = ['axios', 'kubernetes', 'loops', 'traces']
const isInstalled = existsSync(new URL('node_modules/openai', import.meta.url))

// Not in the project's own type check, which has no types of the SDKs: test/clients/tsconfig.json has them.
if (isInstalled) for (const file of FILES) await import(`./sdk/${file}.ts`)
else t.test('clients that need packages of their own', { skip: 'npm run test:clients installs them' }, async () => {})
