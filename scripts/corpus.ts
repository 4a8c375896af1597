import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import pLimit from 'p-limit'
import { startProcess } from '../test/helper/process.ts'
import { readCommandLine, refuseCommandLine, runLong } from './long-run.ts'

const USAGE = `
npm run corpus -- DIR…

Serves folders of skills with the real process, and compares every answer with the disk: every folder is listed, every
document and text file has its bytes through REST and tool calls, and every binary file has its bytes through REST and
is refused as text. The exit code is 1 if anything differs.
`

/** Names that no answer may have, written here without the service's own list. */
const HIDDEN_FOLDERS = new Set(['.git', '.hg', '.svn', 'node_modules', '__pycache__'])
const HIDDEN_FILES =
  /^(?:\.env(?:\.(?!example$|sample$|template$).*)?|\.DS_Store|Thumbs\.db|desktop\.ini|.*~|\..*\.sw.|4913|\.#.*|#.*#)$/s
const MAX_MAIN_FILE_BYTES = 1_048_576
const MAX_TEXT_FILE_BYTES = 10 * 1_048_576
const CONCURRENCY = 16

interface SkillOnDisk {
  readonly name: string
  readonly path: string
  /** Relative paths with their bytes. */
  readonly files: ReadonlyMap<string, Buffer>
}

const differences: string[] = []
const counts = { skills: 0, documents: 0, files: 0, texts: 0, binaries: 0, bytes: 0, requests: 0 }

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)
if (positionals.length === 0) refuseCommandLine('which folders of skills?')
const roots = positionals.map((dir) => resolve(dir))
let skills: ReadonlyMap<string, SkillOnDisk> = new Map()
let base = ''

await runLong(async (run) => {
  run.part('reading the folders')
  skills = readDisk(roots)
  const service = await startProcess(run, { args: roots })
  base = service.url
  run.part(`comparing ${skills.size} skills`)
  await checkList()
  const limit = pLimit(CONCURRENCY)
  await Promise.all(Array.from(skills.values(), (skill) => limit(checkSkill, skill)))
  run.print(JSON.stringify(counts))
  const { code, stderr } = await service.stop()
  expect(code === 0 && stderr === '', `the service ended with ${code}: ${stderr}`)
  for (const difference of differences.slice(0, 50)) run.print(`DIFFERENT: ${difference}`)
  run.print(`corpus: ${skills.size} skills, ${counts.requests} requests, ${differences.length} differences`)
  return differences.length === 0
})

/** Finds skills by a plain walk. If two roots contain a skill of the same name, the first root wins. */
function readDisk (dirs: readonly string[]): Map<string, SkillOnDisk> {
  const found = new Map<string, SkillOnDisk>()
  for (const dir of dirs) {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (!entry.isDirectory() || entry.name.startsWith('.') || found.has(entry.name)) continue
      const path = join(dir, entry.name)
      found.set(entry.name, { name: entry.name, path, files: readFiles(path) })
    }
  }
  return found
}

function readFiles (skill: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (const entry of readdirSync(skill, { withFileTypes: true, recursive: true })) {
    const path = relative(skill, join(entry.parentPath, entry.name))
    const hidden = path.split('/').some((segment) => HIDDEN_FOLDERS.has(segment) || segment.startsWith('..')) ||
      HIDDEN_FILES.test(entry.name)
    if (!hidden && statSync(join(skill, path)).isFile()) files.set(path, readFileSync(join(skill, path)))
  }
  return files
}

async function checkList (): Promise<void> {
  const { skills: listed } = await getJson<{ skills: string[] }>('/skills')
  const called = JSON.parse(await callTool('list_skills', {})) as { skills: string[] }
  expect(JSON.stringify(called.skills) === JSON.stringify(listed), 'list_skills and GET /skills')
  for (const name of skills.keys()) expect(listed.includes(name), `${name} is not listed`)
  for (const name of listed) expect(skills.has(name), `${name} is listed and not on the disk`)
  counts.skills = listed.length
}

async function checkSkill (skill: SkillOnDisk): Promise<void> {
  await checkDocument(skill)
  const { files } = await getJson<{ files: Array<{ path: string, size_bytes: number }> }>(
    `/skills/${encodeURIComponent(skill.name)}/files`)
  const listed = new Map(files.map((file) => [file.path, file.size_bytes]))
  for (const [path, bytes] of skill.files) {
    expect(listed.get(path) === bytes.length, `${skill.name}/${path} in the manifest`)
    await checkFile(skill, path, bytes)
  }
  expect(listed.size === skill.files.size,
    `${skill.name}: ${listed.size} files in the manifest, ${skill.files.size} on the disk`)
}

async function checkDocument ({ name, files }: SkillOnDisk): Promise<void> {
  const main = ['SKILL.MD', 'SKILL.md', ...files.keys()].find((path) => /^skill\.md$/i.test(path) && files.has(path))
  const bytes = main === undefined ? undefined : files.get(main)
  const path = `/skills/${encodeURIComponent(name)}`
  const rest = await get(path)
  const called = JSON.parse(await callTool('get_skill', { skill_name: name })) as {
    documentation?: string
    error?: string
  }
  if (bytes === undefined || bytes.length > MAX_MAIN_FILE_BYTES || !isText(bytes)) {
    expect(rest.status >= 400 && called.error !== undefined, `${name} has no readable document and was served one`)
    return
  }
  const { documentation } = await rest.json() as { documentation: string }
  const raw = await get(path, { accept: 'text/markdown' })
  expect(Buffer.from(documentation).equals(bytes), `${name}: the document through REST`)
  expect(called.documentation === documentation, `${name}: the document through get_skill`)
  expect(Buffer.from(await raw.arrayBuffer()).equals(bytes), `${name}: the document as Markdown`)
  counts.documents++
}

async function checkFile ({ name }: SkillOnDisk, path: string, bytes: Buffer): Promise<void> {
  const url = `/skills/${encodeURIComponent(name)}/files/${path.split('/').map(encodeURIComponent).join('/')}`
  const raw = Buffer.from(await (await get(url)).arrayBuffer())
  expect(raw.equals(bytes), `${name}/${path}: the bytes through REST`)
  counts.files++
  counts.bytes += bytes.length

  const asJson = await get(url, { accept: 'application/json' })
  const called = await callTool('read_file_in_skill', { skill_name: name, file_path: path })
  if (asJson.status === 200) {
    const { content, size_bytes: size, encoding } =
      await asJson.json() as { readonly content: string, readonly size_bytes: number, readonly encoding: string }
    expect(encode(content, encoding).equals(bytes) && size === bytes.length, `${name}/${path}: the text through REST`)
    expect(called === content, `${name}/${path}: the text through read_file_in_skill`)
    counts.texts++
  } else {
    expect(asJson.status === 422 || bytes.length > MAX_TEXT_FILE_BYTES,
      `${name}/${path}: status ${asJson.status} for the text`)
    expect(called.startsWith(`ERROR: Cannot read file '${path}': `),
      `${name}/${path}: read_file_in_skill said ${called.slice(0, 80)}`)
    expect(!isText(bytes) || bytes.includes(0), `${name}/${path} is text and was refused`)
    counts.binaries++
  }
}

function isText (bytes: Buffer): boolean {
  return Buffer.from(bytes.toString('utf8')).equals(bytes)
}

function encode (content: string, encoding: string): Buffer {
  switch (encoding) {
    case 'latin-1': return Buffer.from(content, 'latin1')
    case 'utf-16le': return Buffer.from(content, 'utf16le')
    case 'utf-16be': return Buffer.from(content, 'utf16le').swap16()
    default: return Buffer.from(content)
  }
}

async function get (path: string, headers: Record<string, string> = {}): Promise<Response> {
  counts.requests++
  return await fetch(base + path, { headers })
}

async function getJson<Body> (path: string): Promise<Body> {
  return await (await get(path)).json() as Body
}

async function callTool (name: string, args: object): Promise<string> {
  counts.requests++
  const response = await fetch(`${base}/agent/tool-call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(args) } })
  })
  const { content } = await response.json() as { content: string }
  return content
}

function expect (holds: boolean, what: string): void {
  if (!holds) differences.push(what)
}
