import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { preventsUse } from '../core/format/findings.ts'
import { ZIP_MEDIA_TYPE } from '../archive/zip-writer.ts'
import { RefusedError } from '../core/read/refused.ts'
import { isMainFile } from '../core/format/main-files.ts'
import type { ServableFile } from '../core/read/file-cache.ts'
import { sha256 } from '../core/shared/digest.ts'
import { SkillError } from '../core/shared/errors.ts'
import { isJsonObject } from '../core/shared/json.ts'
import { compareCodePoints } from '../core/shared/text.ts'
import type { View } from '../core/view.ts'
import { wellKnownFindings } from '../verdicts/rules/discovery-index.ts'
import { Discovery, type DiscoveryIndex, hexOf, IMMUTABLE, type LegacyDiscoveryIndex } from '../well-known/discovery.ts'
import { namesIn, type OutputFile, writeTree } from './output-tree.ts'

interface ExportOptions {
  /** The skills that may be exported. */
  readonly skills: View
  /** Absolute path. */
  readonly folder: string
  /** Whether everybody may read them. If not, shared caches must not keep the files, nor other origins read them. */
  readonly isPublic: boolean
  /** Whether skills may be missing for lack of access: the artifacts of missing ones are then removed. */
  readonly isRestricted?: boolean
  /** Remove the artifacts of earlier exports too. Clients that have an earlier index need them for a time. */
  readonly prune?: boolean
}

interface ExportReport {
  readonly files: number
  readonly written: number
  readonly removed: number
  readonly skills: number
  /** Skills that are in no index, with the reason as a sentence. */
  readonly leftOut: ReadonlyArray<{ readonly name: string, readonly reason: string }>
}

/** A file of the export with the headers that a server should send. */
interface ServedFile extends OutputFile {
  readonly type: string
  readonly caching: string
}

const INDEX = '.well-known/agent-skills/index.json'
const LEGACY_INDEX = '.well-known/skills/index.json'
const MANIFEST = 'manifest.json'

/** Folders that belong to the export alone, in which files of earlier exports are removed. */
const OWNED = ['.well-known/skills', '.well-known/agent-skills']

/** `.well-known/agent-skills/<name>/<digest>/…`, which may stay when the index does not list it any more. */
const ARTIFACT = /^\.well-known\/agent-skills\/([^/]+)\/[\da-f]{64}\/(?:SKILL\.md|archive\.zip)$/

/** `Cache-Control` for indexes and for files whose URL does not contain their digest. */
const SHORT = 'max-age=60'
const JSON_TYPE = 'application/json; charset=utf-8'
const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** Text of the `_headers` file, which Netlify, Cloudflare Pages and others read. */
const headersFor = (isPublic: boolean): string => `/.well-known/*
${isPublic ? '  Access-Control-Allow-Origin: *\n' : ''}  X-Content-Type-Options: nosniff
  Content-Security-Policy: default-src 'none'; sandbox
/${INDEX}
  Content-Type: ${JSON_TYPE}
  Cache-Control: ${cacheControl(SHORT, isPublic)}
/${LEGACY_INDEX}
  Content-Type: ${JSON_TYPE}
/.well-known/skills/*
  Cache-Control: ${cacheControl(SHORT, isPublic)}
/.well-known/agent-skills/:name/:digest/SKILL.md
  Content-Type: text/markdown; charset=utf-8
  Cache-Control: ${cacheControl(IMMUTABLE, isPublic)}
/.well-known/agent-skills/:name/:digest/archive.zip
  Content-Type: application/zip
  Cache-Control: ${cacheControl(IMMUTABLE, isPublic)}
`

function cacheControl (rule: string, isPublic: boolean): string {
  return `${isPublic ? 'public' : 'private'}, ${rule}`
}

/**
 * Writes skills as a tree of files that any static server can serve to discovery clients. Equal skills give equal
 * bytes. Each index is written after all files that it lists.
 * @throws {ExportError} if the folder has other content
 * @throws {SkillError} if a skill changes meanwhile
 */
export async function exportSkills (
  { skills, folder, isPublic, isRestricted = false, prune = false }: ExportOptions
): Promise<ExportReport> {
  const names = await namesIn(folder)
  // The manifest is written first, so a folder with an interrupted export has one too.
  if (names.length > 0 && !await isManifest(join(folder, MANIFEST))) {
    throw new ExportError('is not empty and not an earlier export: name an empty or a new folder')
  }
  const discovery = new Discovery(skills, { isComplete: true })
  const { '0.2.0': index, '0.1.0': legacyIndex } = await discovery.indexes()
  const listed: ServedFile[] = []
  for (const entry of index.skills) listed.push(await artifactFile(discovery, entry))
  for (const entry of legacyIndex.skills) listed.push(...await filesOfSkill(skills, entry))
  listed.push(textFile(LEGACY_INDEX, JSON.stringify(legacyIndex)), textFile(INDEX, JSON.stringify(index)))
  const all = [
    textFile(MANIFEST, manifestOf(listed, isPublic)),
    textFile('_headers', headersFor(isPublic), PLAIN_TEXT),
    // Without this file GitHub Pages skips names that begin with `.` or `_`, and renders Markdown.
    textFile('.nojekyll', '', PLAIN_TEXT),
    ...listed
  ]
  const installable = new Set([...index.skills, ...legacyIndex.skills].map(({ name }) => name))
  const mayStay = (path: string): boolean => {
    const [, name = ''] = ARTIFACT.exec(path) ?? []
    return name !== '' && !prune && (!isRestricted || installable.has(name))
  }
  const { written, removed } = await writeTree(folder, all, { owned: OWNED, mayStay })
  const missing = (await skills.list()).filter((name) => !installable.has(name))
  const leftOut = await Promise.all(missing.toSorted(compareCodePoints).map(async (name) =>
    ({ name, reason: await reasonFor(skills, name) })))
  return { files: all.length, written, removed, skills: installable.size, leftOut }
}

/** Says why an export cannot be written to a folder. The message completes a sentence that begins with the folder. */
export class ExportError extends Error {
  override readonly name = 'ExportError'
}

type IndexEntry = DiscoveryIndex['skills'][number]

/** Returns an artifact in the revision that the index lists. */
async function artifactFile (discovery: Discovery, { name, type, url, digest }: IndexEntry): Promise<ServedFile> {
  const artifact = await discovery.findArtifact(name, type, hexOf(digest))
  if (artifact === undefined) throw new SkillError('skill_changing', `Skill '${name}' changed while it was exported`)
  const served = { path: `.well-known/agent-skills/${url}`, digest, caching: IMMUTABLE }
  if ('archive' in artifact) {
    const { archive } = artifact
    return { ...served, type: ZIP_MEDIA_TYPE, size: archive.size, chunks: () => archive.chunks() }
  }
  const { bytes } = artifact.content
  return { ...served, type: 'text/markdown; charset=utf-8', size: bytes.length, chunks: () => [bytes] }
}

async function filesOfSkill (
  skills: View, { name, files, version }: LegacyDiscoveryIndex['skills'][number]
): Promise<ServedFile[]> {
  const pinned = skills.at(version)
  const manifest = await pinned.read(name, (skill) => skill.manifest())
  const byPath = new Map(manifest.files.map((file) => [file.path, file]))
  // The index lists the main file as SKILL.md, whatever its casing on disk.
  const mainFile = manifest.files.find(({ path }) => isMainFile(path))
  return files.flatMap((file) => {
    const listed = byPath.get(file) ?? mainFile
    if (listed === undefined) return []
    return {
      path: `.well-known/skills/${name}/${file}`,
      digest: listed.digest,
      size: listed.size_bytes,
      type: listed.media_type,
      caching: SHORT,
      chunks: () => bytesOf(pinned.read(name, (skill) => skill.open(listed.path)))
    }
  })
}

async function * bytesOf (opening: Promise<ServableFile>): AsyncGenerator<Uint8Array> {
  const file = await opening
  if (file.kind === 'content') {
    yield file.content.bytes
    return
  }
  try {
    yield * file.chunks(0, file.size - 1)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    throw new SkillError('skill_changing', `A file changed while it was exported: ${error.message}`)
  } finally {
    await file.close()
  }
}

function textFile (path: string, text: string, type = JSON_TYPE): ServedFile {
  const bytes = Buffer.from(text)
  return { path, digest: sha256(bytes), size: bytes.length, type, caching: SHORT, chunks: () => [bytes] }
}

/** Lists the files in the order of upload, with the type and `Cache-Control` that object stores need. */
function manifestOf (files: readonly ServedFile[], isPublic: boolean): string {
  const rows = files.map(({ path, type, caching, digest, size }) => {
    const rule = cacheControl(caching, isPublic)
    return { path, content_type: type, cache_control: rule, sha256: hexOf(digest), size_bytes: size }
  })
  return `${JSON.stringify({ files: rows }, undefined, 2)}\n`
}

/** Checks whether this is the manifest of an export: web applications have a file of the same name. */
async function isManifest (path: string): Promise<boolean> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isJsonObject(value) && Array.isArray(value['files'])
  } catch {
    return false
  }
}

async function reasonFor (skills: View, name: string): Promise<string> {
  try {
    const findings = await skills.read(name, async (state) => {
      const { utf8 } = await state.mainFile()
      return [...state.skill.findings, ...wellKnownFindings(state.skill, await state.manifest(), utf8)]
    })
    const isReason = /^(?:discovery_|too_many_|main_file_ambiguous$)/
    const found = findings.find(preventsUse) ?? findings.find(({ code }) => isReason.test(code))
    return found?.message ?? 'it could not be read whole'
  } catch (error) {
    if (error instanceof SkillError) return error.message
    throw error
  }
}
