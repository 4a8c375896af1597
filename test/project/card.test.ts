import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Each package of the card, and the file or folder of the project that it works in. */
const PACKAGES = {
  fastify: 'src/app.ts',
  '@fastify/swagger': 'src/openapi',
  '@fastify/swagger-ui': 'src/openapi',
  '@sinclair/typebox': 'src/schemas',
  chokidar: 'src/core/watch',
  pino: 'src/log.ts',
  tap: 'test'
} as const

const TOP_LEVEL = [
  'package.json', 'tsconfig.json', 'src', 'test', 'openapi', 'Dockerfile', 'docker-compose.yml', 'skills'
]

interface Package {
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

function sourcesOf (path: string): string[] {
  if (statSync(path).isFile()) return [readFileSync(path, 'utf8')]
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return files.map((name) => readFileSync(join(path, name), 'utf8'))
}

t.test('K0: the packages of the card are dependencies, and each is imported in its part of the project', async (t) => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package
  for (const [name, path] of Object.entries(PACKAGES)) {
    t.ok(name in (name === 'tap' ? devDependencies : dependencies), `${name} is in package.json`)
    const imported = new RegExp(`^import (?!type )[^']*'${name}'$`, 'm')
    t.ok(sourcesOf(join(ROOT, path)).some((source) => imported.test(source)), `${path} imports ${name}`)
  }
})

t.test("K0: npm test runs tap's own command", async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package
  t.match(scripts['test'], /(?:^|&& )tap$/)
})

t.test('K0: the top level has the files and folders of the card', async (t) => {
  for (const name of TOP_LEVEL) t.ok(existsSync(join(ROOT, name)), name)
})
