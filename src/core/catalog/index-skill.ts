import { basename } from 'node:path'
import { createSlicer } from '../shared/async.ts'
import type { Disk } from '../disk/disk.ts'
import { entriesIn } from '../disk/folder-entries.ts'
import { IGNORE_FILE, type IgnoreRules, unreadableIgnoreFile } from '../disk/ignore-file.ts'
import { asRefused, changed, isNoMainFile, mainFileRefusal, RefusedError, type Refusal } from '../disk/refused.ts'
import { isSameState, isTrustworthy, signatureOf } from '../disk/signature.ts'
import type { FilePlace, FileStore, ReadFile } from '../files/file-store.ts'
import { finding } from '../format/findings.ts'
import { parseSkillBytes } from '../format/main-file.ts'
import { MAX_MAIN_FILE_BYTES, MAX_SKILL_ENTRIES } from '../shared/limits.ts'
import type { CatalogSkill, Finding, Frontmatter, Signature } from '../shared/skill.ts'
import type { IndexedSkill } from './catalog.ts'
import { isMainFile, orderMainFiles } from '../format/main-files.ts'
import type { SkillFolder } from '../roots/scan-root.ts'
import { createSkillFilter, type IgnoreFile, readIgnoreFile, type SkillFilter } from '../roots/skill-filter.ts'

/** The signature of a folder that could not be read: it equals no other. */
const UNREAD: Signature = { dev: 0n, ino: 0n, size: 0n, mtimeNs: 0n, ctimeNs: 0n }

const NO_NAMES: ReadonlySet<string> = new Set()

const NO_FRONTMATTER: Frontmatter = Object.freeze({})

interface MainFile extends ReadFile {
  readonly name: string
}

interface IndexOptions {
  readonly disk: Disk
  readonly store: FileStore
  readonly sequence: number
  /** Names at the top of a skill that are not served. Default none. */
  readonly hiddenNames?: ReadonlySet<string> | undefined
}

/**
 * Reads what the index keeps of a skill. Whatever is wrong inside the folder is a finding.
 * @returns undefined when the folder is no longer the one that the root listed
 */
export async function indexSkill (folder: SkillFolder, { disk, store, sequence, hiddenNames = NO_NAMES }: IndexOptions): Promise<IndexedSkill | undefined> {
  const readAt = Date.now()
  let folderSignature = UNREAD
  let mainFiles: readonly string[] | undefined
  let ignoreFile: IgnoreFile | undefined
  let filter: SkillFilter | undefined
  let main: MainFile | undefined
  let refused: RefusedError | undefined
  try {
    const stats = await disk.stat(folder.path)
    if (!stats?.isDirectory() || await disk.realpath(folder.path) !== folder.realPath) return undefined
    folderSignature = signatureOf(stats)
    const names = await listNames(disk, folder.realPath, stats.size, hiddenNames)
    if (names.includes(IGNORE_FILE)) ignoreFile = await readIgnoreFile(disk, folder.realPath)
    filter = createSkillFilter(folder.name, folder.rootRules, ignoreFile?.rules, new Set([...hiddenNames].filter((name) => names.includes(name))))
    mainFiles = names.filter((name) => name !== IGNORE_FILE && filter?.hides(name, false) !== true)
    main = await readMainFile(store, disk, { folder: folder.realPath, filter }, mainFiles)
    if (!await hasSameNames(disk, folder, { folderSignature, names }, hiddenNames)) throw changed('a main file came or went while the skill was read')
  } catch (error) {
    refused = asRefused(error)
    // Each name is asked for alone, since any may be missing or a link. An error of the disk does not mean that the folder went away.
    if (refused.refusal === 'not_found' || refused.refusal === 'outside') return undefined
    if (mainFiles === undefined) filter = createSkillFilter(folder.name, folder.rootRules, await unreadRules(disk, folder), hiddenNames)
  }
  mainFiles ??= []
  return {
    ...describeSkill(folder, { mainFiles, main, filter, refused }),
    folder,
    folderSignature,
    mainFiles,
    mainFile: main && { name: main.name, signature: main.signature },
    ignoreFile: ignoreFile && { signature: ignoreFile.signature },
    filter,
    refused,
    isTrustworthy: [folderSignature, ignoreFile?.signature, main?.signature].every((state) => state === undefined || isTrustworthy(state, readAt)),
    sequence
  }
}

/** What the catalog says of a skill whose files are these. */
export function describeSkill (folder: SkillFolder, { mainFiles, main, filter, refused }: {
  readonly mainFiles: readonly string[]
  readonly main: Pick<MainFile, 'name' | 'content'> | undefined
  readonly filter?: SkillFilter | undefined
  readonly refused?: RefusedError | undefined
}): CatalogSkill {
  const { ownName } = folder
  const parsed = main && parseSkillBytes(main.content.bytes, ownName ?? folder.name)
  // The operator has renamed the skill, and its author made no mistake.
  const isRenamed = ownName !== undefined && parsed?.summary.name === ownName
  const file = main?.name ?? mainFiles[0] ?? 'SKILL.md'
  const inMainFile = (found: Finding): Finding => ({ ...found, file })
  const findings = [
    ...mainFileFindings(mainFiles, main?.name, refused).map(inMainFile),
    ...parsed?.findings.map(inMainFile) ?? [],
    ...isRenamed ? [inMainFile(renamedFinding(ownName, folder.name))] : [],
    ...filter?.findings ?? []
  ]
  return {
    name: folder.name,
    metadata: {
      name: isRenamed ? folder.name : parsed?.summary.name ?? folder.name,
      description: parsed?.summary.description ?? '',
      type: folder.type,
      skillPath: folder.path,
      path: `${folder.path}/${file}`,
      ...folder.name !== basename(folder.path) && { address: folder.name }
    },
    frontmatter: parsed?.frontmatter ?? NO_FRONTMATTER,
    findings,
    valid: !findings.some(({ severity }) => severity === 'error'),
    ...main && { digest: main.content.digest }
  }
}

/** Of a skill that could not be listed, or whose ignore file could not be read: what that one hides is not known. */
async function unreadRules (disk: Disk, { realPath }: SkillFolder): Promise<IgnoreRules | undefined> {
  try {
    if (await disk.lstat(`${realPath}/${IGNORE_FILE}`) === undefined) return undefined
  } catch (error) {
    // Without permission to search the folder no file in it can be opened.
    if (asRefused(error).refusal === 'permission_denied') return undefined
  }
  return unreadableIgnoreFile('cannot be read')
}

/** Another main file may be preferred to the one that was read, or an ignore file hide it. */
async function hasSameNames (disk: Disk, folder: SkillFolder, before: { readonly folderSignature: Signature, readonly names: readonly string[] }, hiddenNames: ReadonlySet<string>): Promise<boolean> {
  const stats = await disk.stat(folder.path)
  if (stats !== undefined && isSameState(signatureOf(stats), before.folderSignature)) return true
  const names = await listNames(disk, folder.realPath, stats?.size ?? 0n, hiddenNames)
  return names.length === before.names.length && names.every((name) => before.names.includes(name))
}

/** Those of main files, of the ignore file, and of what is not served. */
async function listNames (disk: Disk, path: string, size: bigint, hiddenNames: ReadonlySet<string>): Promise<readonly string[]> {
  const yieldIfNeeded = createSlicer()
  const found: string[] = []
  let count = 0
  for await (const { entries } of entriesIn(disk, path, size)) {
    found.push(...entries.map(({ name }) => name).filter((name) => isMainFile(name) || name === IGNORE_FILE || hiddenNames.has(name)))
    count += entries.length
    // Of a very large folder only the usual names are asked for.
    if (count > MAX_SKILL_ENTRIES) return await addUsualNames(disk, path, found, hiddenNames)
    await yieldIfNeeded()
  }
  return found
}

async function addUsualNames (disk: Disk, path: string, found: string[], hiddenNames: ReadonlySet<string>): Promise<readonly string[]> {
  for (const name of ['SKILL.md', 'SKILL.MD', IGNORE_FILE, ...hiddenNames]) {
    if (!found.includes(name) && await disk.lstat(`${path}/${name}`) !== undefined) found.push(name)
  }
  return found
}

/** The first of the main files that is a regular file of this skill. */
async function readMainFile (store: FileStore, disk: Disk, place: Pick<FilePlace, 'folder' | 'filter'>, names: readonly string[]): Promise<MainFile | undefined> {
  for (const name of orderMainFiles(names, 'SKILL.md')) {
    try {
      return { name, ...await store.read({ disk, ...place, path: name }, MAX_MAIN_FILE_BYTES) }
    } catch (error) {
      if (!(error instanceof RefusedError) || !isNoMainFile(error.refusal)) throw error
    }
  }
  return undefined
}

function mainFileFindings (names: readonly string[], used: string | undefined, refused: RefusedError | undefined): Finding[] {
  const findings: Finding[] = []
  if (refused !== undefined) findings.push(refusedFinding(mainFileRefusal(refused)))
  else if (used === undefined) findings.push(names.length === 0 ? MISSING : NOT_A_FILE)
  if (names.length > 1) findings.push(SEVERAL)
  if (used !== undefined && used !== 'SKILL.md') {
    findings.push(finding('main_file_casing', `the main file is called '${used}'`, 'Rename it to SKILL.md'))
  }
  return findings
}

function renamedFinding (name: string, address: string): Finding {
  return finding('name_prefixed', `name '${name}' lacks the prefix of its source: the skill is served as '${address}'`,
    `If clients that compare the two matter, call the skill and its folder '${address}' in the source, and drop the prefix`, 'name')
}

const MISSING: Finding = finding('main_file_missing', 'SKILL.md is missing', 'Add a SKILL.md file with YAML frontmatter that has a name and a description')

const NOT_A_FILE: Finding = finding('main_file_not_a_file', 'SKILL.md is not a regular file inside the skill folder', 'Replace SKILL.md with a regular file, or with a link to a file of the same skill')

const SEVERAL: Finding = finding('main_file_ambiguous', 'the folder has several main files that differ only in case', 'Keep SKILL.md and remove or rename the others')

function refusedFinding (refusal: Refusal): Finding {
  switch (refusal) {
    case 'too_large':
      return finding('main_file_too_large', `SKILL.md is larger than ${MAX_MAIN_FILE_BYTES} bytes`, 'Move details into supporting files and link to them from SKILL.md')
    case 'permission_denied':
      return finding('main_file_permission_denied', 'SKILL.md may not be read by the server', 'Give the user that runs the server permission to read the folder and SKILL.md')
    default:
      return finding('main_file_unreadable', 'SKILL.md cannot be read', 'Check the disk, and write SKILL.md again')
  }
}
