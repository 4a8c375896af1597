import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { mainFileError, fileError, folderError } from '../../src/core/shared/errors.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SPECIFICATION = readFileSync(`${ROOT}docs/specification.md`, 'utf8')

/** A statement of the specification begins with its id in bold: `- **K12** …`. */
const STATEMENT = /^- \*\*(K\d+)\*\* /gm

/** The first argument of a call of `test`, when it begins as a literal: what a template inserts later does not matter. */
const TEST_NAME = /\.test\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g

/** One id or several at the beginning of a name: `K12`, `K12: …`, `K3 K14: …`. */
const LEADING_IDS = /^K\d+(?: K\d+)*\b/

/** Ids of a list that is not in the repository, at the beginning of a name, after ids of the specification, or in brackets. */
const FOREIGN_ID = /^(?:K\d+[ ,:]+)*[A-JL-Z]\d{1,2}(?:[:,–]| to )|\([A-JL-Z]\d{1,2}(?:[,–][^)]*)?\)|^§/

interface TestName {
  readonly file: string
  readonly name: string
}

function sourcesBelow (folder: string): string[] {
  return readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
}

function testNames (): TestName[] {
  return sourcesBelow('test').flatMap((file) =>
    Array.from(readFileSync(`${ROOT}${file}`, 'utf8').matchAll(TEST_NAME), ([, single, double, template]) => ({ file, name: single ?? double ?? template ?? '' })))
}

function byNumber (a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1))
}

const statements = Array.from(SPECIFICATION.matchAll(STATEMENT), ([, id = '']) => id)
const names = testNames()
const proven = new Set(names.flatMap(({ name }) => LEADING_IDS.exec(name)?.[0].split(' ') ?? []))

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

t.test('no test name begins with an id of a list that is not in the repository', async (t) => {
  t.ok(names.length > 100)
  t.strictSame(names.filter(({ name }) => FOREIGN_ID.test(name)).map(({ file, name }) => `${file}: ${name}`), [])
})

t.test('the architecture page draws every room, the highest floor first', async (t) => {
  const [, tree = ''] = /```\nsrc\/\n([^]*?)```/.exec(readFileSync(`${ROOT}docs/architecture.md`, 'utf8')) ?? []
  const rooms: string[] = []
  // A folder of such a room stands in its line: `kept/`.
  const inner: string[] = []
  let above = ''
  for (const [, indent, name = '', what = ''] of tree.matchAll(/^( {2}| {4})([\w.-]+\/?)(.*)/gm)) {
    if (indent === '  ') above = name
    const room = indent === '  ' ? name : `${above}${name}`
    rooms.push(room)
    if (indent === '    ') inner.push(...Array.from(what.matchAll(/\b\w+\//g), ([folder]) => `${room}${folder}`))
  }
  const folders = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => `${relative(`${ROOT}src`, join(parentPath, name)).replaceAll('\\', '/')}/`)
  t.strictSame(folders.filter((folder) => !rooms.includes(folder) && !inner.includes(folder)), [], 'no folder is missing')
  t.strictSame(inner.filter((folder) => !folders.includes(folder)), [], 'each inner one is there')
  const inFolder = (folder: string) => readdirSync(`${ROOT}src/${folder}`, { withFileTypes: true }).map((entry) => `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`)
  t.strictSame([...inFolder(''), ...inFolder('core/')].filter((room) => !rooms.includes(room)), [], 'none is missing')
  t.strictSame(rooms.filter((room) => !existsSync(`${ROOT}src/${room}`)), [], 'each is there')
  const [, table = ''] = /const FLOORS = \[\n([^]*?)\n\]/.exec(readFileSync(`${ROOT}eslint.config.js`, 'utf8')) ?? []
  const floors = table.split('\n').map((line) => Array.from(line.matchAll(/'([^']+)'/g), ([, room = '']) => room))
  const numbers = rooms.map((room) => floors.findIndex((floor) => floor.includes(room))).filter((number) => number !== -1)
  t.ok(numbers.length > 40)
  t.strictSame(numbers, numbers.toSorted((a, b) => b - a))
})

t.test('a folder of the source has at most a dozen files, and a file at most 300 lines', async (t) => {
  const files = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const counts = new Map<string, number>()
  for (const { parentPath } of files) counts.set(parentPath, (counts.get(parentPath) ?? 0) + 1)
  t.ok(counts.size > 50)
  t.strictSame([...counts].filter(([, count]) => count > 12), [])
  const long = files.map(({ parentPath, name }) => `${parentPath}/${name}`).filter((file) => readFileSync(file, 'utf8').split('\n').length > 301)
  t.strictSame(long, [])
})

t.test('the errors in the specification are those of the service, to the letter', async (t) => {
  const errors = [
    ...[mainFileError.invalidName, mainFileError.skillNotFound, mainFileError.notFound, mainFileError.tooLarge, mainFileError.permissionDenied, mainFileError.notUtf8, mainFileError.unreadable]
      .map((make) => make('<name>')),
    ...[fileError.invalidName, fileError.invalidPath, fileError.traversal, folderError.permissionDenied].map((make) => make()),
    ...[fileError.permissionDenied, fileError.isDirectory, fileError.notRegular, fileError.notText, fileError.ioError].map((make) => make('<file>')),
    fileError.notFound('<name>', '<file>'),
    folderError.notFound('<path>')
  ]
  for (const { message } of errors) t.ok(SPECIFICATION.includes(message), message)
})
