import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { mainFileError, fileError, folderError } from '../../src/core/shared/errors.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SPECIFICATION = readFileSync(`${ROOT}docs/specification.md`, 'utf8')

/** A statement of the specification begins with its id in bold: `- **K12** …`. */
const STATEMENT = /^- \*\*(K\d+)\*\* /gm

/** The first argument of a call of `test`, if it begins as a literal: what a template inserts does not matter. */
const TEST_NAME = /\.test\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g

/** One id or several at the beginning of a name: `K12: …`, `K3 K14: …`, `K12, K13: …`, `K1 and K2: …`. */
const LEADING_IDS = /^K\d+(?:(?:,| and)? K\d+)*\b/

function sourcesBelow (folder: string): string[] {
  return readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
}

function testNames (): string[] {
  return sourcesBelow('test').flatMap((file) =>
    Array.from(readFileSync(`${ROOT}${file}`, 'utf8').matchAll(TEST_NAME), ([, ...quoted]) => quoted.join('')))
}

function byNumber (a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1))
}

const statements = Array.from(SPECIFICATION.matchAll(STATEMENT), ([, id = '']) => id)
const proven = new Set(testNames().flatMap((name) => LEADING_IDS.exec(name)?.[0].match(/K\d+/g) ?? []))

t.test('no two statements of the specification have the same id', async (t) => {
  t.ok(statements.length > 50)
  t.strictSame(statements.filter((id, index) => statements.indexOf(id) !== index), [])
})

t.test('the specification mentions no id without a statement', async (t) => {
  const mentioned = new Set(SPECIFICATION.match(/\bK\d+\b/g))
  t.strictSame([...mentioned].filter((id) => !statements.includes(id)).sort(byNumber), [])
})

t.test('for every statement of the specification there is a test whose name begins with its id', async (t) => {
  t.strictSame(statements.filter((id) => !proven.has(id)).sort(byNumber), [])
})

t.test('every id at the beginning of a test name is in the specification', async (t) => {
  t.strictSame([...proven].filter((id) => !statements.includes(id)).sort(byNumber), [])
})

t.test('sources give the reason and no id', async (t) => {
  const sources = sourcesBelow('src')
  t.ok(sources.length > 50)
  t.strictSame(sources.filter((file) => /\bK\d{1,3}\b/.test(readFileSync(`${ROOT}${file}`, 'utf8'))), [])
})

t.test('the architecture page has every folder of the source', async (t) => {
  const architecture = readFileSync(`${ROOT}docs/architecture.md`, 'utf8')
  const folders = ['src', 'src/core'].flatMap((folder) => readdirSync(`${ROOT}${folder}`, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory()).map(({ name }) => `${name}/`)
  t.strictSame(folders.filter((folder) => !architecture.includes(folder)), [])
})

t.test('the files that the documents of developers name are there', async (t) => {
  for (const document of ['docs/architecture.md', 'CONTRIBUTING.md']) {
    const text = readFileSync(`${ROOT}${document}`, 'utf8')
    const paths = Array.from(text.matchAll(/`([a-z-]+\/[\w/.-]+\.ts)`/g), ([, path = '']) => path)
    t.ok(paths.length > 0, document)
    t.strictSame(paths.filter((path) => !existsSync(`${ROOT}${path}`) && !existsSync(`${ROOT}src/${path}`)), [])
  }
})

t.test('the errors in the specification are those of the service, to the letter', async (t) => {
  const errors = [
    ...[
      mainFileError.invalidName, mainFileError.skillNotFound, mainFileError.notFound, mainFileError.tooLarge,
      mainFileError.permissionDenied, mainFileError.notUtf8, mainFileError.unreadable
    ].map((make) => make('<name>')),
    ...[fileError.invalidName, fileError.invalidPath, fileError.traversal, folderError.permissionDenied]
      .map((make) => make()),
    ...[fileError.permissionDenied, fileError.isDirectory, fileError.notRegular, fileError.notText, fileError.ioError]
      .map((make) => make('<file>')),
    fileError.notFound('<name>', '<file>'),
    folderError.notFound('<path>')
  ]
  for (const { message } of errors) t.ok(SPECIFICATION.includes(message), message)
})
