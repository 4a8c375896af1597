import { basename } from 'node:path'
import { finding } from './format/findings.ts'
import { parseSkillBytes } from './format/main-file.ts'
import { isMainFile, orderMainFiles } from './format/main-files.ts'
import type { Disk } from './read/disk.ts'
import type { FileCache } from './read/file-cache.ts'
import type { FileContent } from './read/file-content.ts'
import {
  createSkillFilter, IGNORE_FILE, type IgnoreFile, type IgnoreRules, readIgnoreFile, type SkillFilter, unusableRules
} from './read/ignore-file.ts'
import type { FilePlace } from './read/open-inside.ts'
import { asRefused, changed, isPassedOver, RefusedError, type Refusal } from './read/refused.ts'
import { type FileStamp, isSettled, stampOf } from './read/file-stamp.ts'
import type { SkillFolder } from './roots/list-root.ts'
import type { Root } from './roots/root.ts'
import { MAX_MAIN_FILE_BYTES } from './shared/limits.ts'
import type { CatalogSkill, Finding } from './shared/skill.ts'

/** A skill in one state, with the stamps that tell whether the disk still has it. */
export interface IndexedSkill extends CatalogSkill {
  readonly root: Root
  readonly folder: SkillFolder
  /** Undefined if the folder could not be read. */
  readonly folderStamp: FileStamp | undefined
  /** Names of main files in the folder, in any casing. */
  readonly mainFiles: readonly string[]
  /** The main file that was read. */
  readonly mainFile: { readonly name: string, readonly stamp: FileStamp } | undefined
  readonly ignoreFile: IgnoreFile | undefined
  /** Hides files of the skill, in addition to hidden names. */
  readonly filter: SkillFilter | undefined
  /** Why the main file, or the folder, could not be read. */
  readonly refused: RefusedError | undefined
  /** Whether every later edit is sure to change one of the stamps. */
  readonly isSettled: boolean
  readonly headings: readonly string[]
  /** Hash over the states of all files; absent until they have been compared. */
  readonly fingerprint?: string
}

interface MainFile {
  readonly name: string
  readonly content: FileContent
  readonly stamp: FileStamp
}

/** Reads a skill; undefined when its folder is not the one that the root listed. Problems become findings. */
export async function readSkill (
  root: Root, files: FileCache, folder: SkillFolder
): Promise<IndexedSkill | undefined> {
  const { disk } = root
  const readAt = Date.now()
  let folderStamp: FileStamp | undefined
  let mainFiles: readonly string[] | undefined
  let ignoreFile: IgnoreFile | undefined
  let filter: SkillFilter | undefined
  let main: MainFile | undefined
  let refused: RefusedError | undefined
  try {
    const stats = await disk.stat(folder.path)
    if (!stats?.isDirectory() || await disk.realpath(folder.path) !== folder.realPath) return undefined
    folderStamp = stampOf(stats)
    const names = (await disk.readdir(folder.realPath)).map(({ name }) => name)
    if (names.includes(IGNORE_FILE)) ignoreFile = await readIgnoreFile(disk, folder.realPath)
    filter = createSkillFilter(folder.name, folder.rules, ignoreFile?.rules)
    mainFiles = names.filter((name) => isMainFile(name) && filter?.hides(name, false) !== true)
    main = await readMainFile(files, { disk, folder: folder.realPath, filter }, mainFiles)
    // Added and removed files are noticed by the next comparison. A replaced folder is not, so it is checked here.
    const after = await disk.stat(folder.path)
    if (after?.ino !== stats.ino) throw changed('the folder was replaced while its skill was read')
  } catch (error) {
    refused = asRefused(error)
    // `readMainFile` passes over missing and linked main files, so this error is about the folder itself.
    if (refused.refusal === 'not_found' || refused.refusal === 'outside') return undefined
    if (mainFiles === undefined) {
      filter = createSkillFilter(folder.name, folder.rules, await unreadRules(disk, folder))
    }
  }
  mainFiles ??= []
  return Object.freeze({
    ...describeSkill(folder, { mainFiles, main, filter, refused }),
    root,
    folder,
    folderStamp,
    mainFiles,
    mainFile: main && { name: main.name, stamp: main.stamp },
    ignoreFile,
    filter,
    refused,
    isSettled: [folderStamp, ignoreFile?.stamp, main?.stamp].every((stamp) => isSettled(stamp, readAt))
  })
}

export function describeSkill (folder: SkillFolder, { mainFiles, main, filter, refused }: {
  readonly mainFiles: readonly string[]
  readonly main: Pick<MainFile, 'name' | 'content'> | undefined
  readonly filter?: SkillFilter | undefined
  readonly refused?: RefusedError | undefined
}): CatalogSkill & Pick<IndexedSkill, 'headings'> {
  const { nameInSource } = folder
  const parsed = main && parseSkillBytes(main.content.bytes, nameInSource ?? folder.name)
  // The operator has added a prefix to the name, so a mismatch is not the author's mistake.
  const isRenamed = nameInSource !== undefined && parsed?.summary.name === nameInSource
  const file = main?.name ?? mainFiles[0] ?? 'SKILL.md'
  const inMainFile = (found: Finding): Finding => ({ ...found, file })
  const findings = [
    ...mainFileFindings(mainFiles, main?.name, refused).map(inMainFile),
    ...parsed?.findings.map(inMainFile) ?? [],
    ...isRenamed ? [inMainFile(renamedFinding(nameInSource, folder.name))] : [],
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
    frontmatter: parsed?.frontmatter ?? {},
    headings: parsed?.headings ?? [],
    findings,
    valid: !findings.some(({ severity }) => severity === 'error'),
    ...main && { digest: main.content.digest }
  }
}

/** Returns the rules of a skill whose folder cannot be read: an ignore file may hide anything. */
async function unreadRules (disk: Disk, { realPath }: SkillFolder): Promise<IgnoreRules | undefined> {
  try {
    if (await disk.lstat(`${realPath}/${IGNORE_FILE}`) === undefined) return undefined
  } catch (error) {
    // Without permission to search the folder no file in it can be opened.
    if (asRefused(error).refusal === 'permission_denied') return undefined
  }
  return unusableRules('cannot be read')
}

async function readMainFile (
  files: FileCache, place: Omit<FilePlace, 'path'>, names: readonly string[]
): Promise<MainFile | undefined> {
  for (const name of orderMainFiles(names, 'SKILL.md')) {
    try {
      return { name, ...await files.read({ ...place, path: name }, MAX_MAIN_FILE_BYTES, false) }
    } catch (error) {
      if (!(error instanceof RefusedError) || !isPassedOver(error.refusal)) throw error
    }
  }
  return undefined
}

function mainFileFindings (
  names: readonly string[], used: string | undefined, refused: RefusedError | undefined
): Finding[] {
  const isMissing = refused === undefined && used === undefined
  return [
    ...refused === undefined ? [] : [REFUSED[refused.refusal] ?? UNREADABLE],
    ...isMissing ? [names.length === 0 ? MISSING : NOT_A_FILE] : [],
    ...names.length > 1 ? [SEVERAL] : [],
    ...used === undefined || used === 'SKILL.md'
      ? []
      : [finding('main_file_casing', `the main file is called '${used}'`, 'Rename it to SKILL.md')]
  ]
}

function renamedFinding (name: string, address: string): Finding {
  return finding('name_prefixed',
    `name '${name}' lacks the prefix of its source: the skill is served as '${address}'`,
    `If clients that compare the two matter, call the skill and its folder '${address}' in the source, ` +
    'and drop the prefix', 'name')
}

const MISSING: Finding = finding('main_file_missing', 'SKILL.md is missing',
  'Add a SKILL.md file with YAML frontmatter that has a name and a description')

const NOT_A_FILE: Finding = finding('main_file_not_a_file', 'SKILL.md is not a regular file inside the skill folder',
  'Replace SKILL.md with a regular file, or with a link to a file of the same skill')

const SEVERAL: Finding = finding('main_file_ambiguous', 'the folder has several main files that differ only in case',
  'Keep SKILL.md and remove or rename the others')

const UNREADABLE: Finding = finding('main_file_unreadable', 'SKILL.md cannot be read',
  'Check the disk, and write SKILL.md again')

const REFUSED: Readonly<Partial<Record<Refusal, Finding>>> = {
  too_large: finding('main_file_too_large', `SKILL.md is larger than ${MAX_MAIN_FILE_BYTES} bytes`,
    'Move details into supporting files and link to them from SKILL.md'),
  permission_denied: finding('main_file_permission_denied', 'the server has no permission to read SKILL.md',
    'Give the user that runs the server permission to read the folder and SKILL.md')
}
