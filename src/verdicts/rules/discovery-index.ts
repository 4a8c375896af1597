import { basename } from 'node:path/posix'
import { isUsable } from '../../core/format/findings.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import { own, ownText } from '../../core/shared/json.ts'
import type { CatalogSkill, FileList, Finding } from '../../core/shared/skill.ts'
import { finding, findingOnFiles } from '../findings.ts'
import {
  ADVISED_DISCOVERY_FILE_BYTES, MAX_DISCOVERY_DESCRIPTION_UNITS, MAX_DISCOVERY_FILES, MAX_DISCOVERY_UNPACKED_BYTES
} from '../limits.ts'
import { bytesOf } from '../subject.ts'
import { outcomesOf } from '../targets.ts'

/** The frontmatter as clients find it: anything may follow the three dashes that close it. */
const CLIENT_FRONTMATTER = /^---\r?\n[^]*?\r?\n---/

/** Rest of a closing line that is a fence for this service too. */
const REST_OF_FENCE = /^[ \t]*(?:\r?\n|$)/

/** Paths that version 0.1.0 can name: printable ASCII without characters that URLs and its clients interpret. */
const LEGACY_PATH = /^(?!.*\.\.)[ -~]*[!-~]$/
const LEGACY_RESERVED = /[\\?#%[\]]/

/** Paths that clients refuse, because they seem to leave the folder that an archive is unpacked into. */
const UNSAFE_PATH = /\\|^[A-Za-z]:/

/** Whether clients take a file for the main file: they accept any casing, beyond ASCII too. */
const isTakenForMain = (path: string) => !isMainFile(path) && path.toLowerCase() === 'skill.md'

/**
 * Finds why a usable skill is missing from a discovery index, or does not reach all clients whole. A skill that clients
 * refuse is left out: they drop it silently or, with version 0.1.0, drop the whole index. Pure.
 * @param mainFile text of the main file, a byte order mark included; undefined when it cannot be read
 */
export function wellKnownFindings (
  skill: CatalogSkill, manifest: FileList, mainFile: string | undefined
): readonly Finding[] {
  if (!isUsable(skill)) return []
  const paths = manifest.files.map(({ path }) => path)
  return [
    checkFrontmatter(skill, mainFileOf(skill, manifest) && mainFile), checkPaths(paths), checkDescription(skill),
    checkSizes(manifest), checkInternal(skill)
  ].flat()
}

/** Whether a skill with these findings is in the index of a version. */
export function isListed (findings: readonly Finding[], version: '0.1.0' | '0.2.0'): boolean {
  return !findings.some(({ code }) => outcomesOf(code)
    .some(({ target, outcome }) => target === `discovery-${version}` && outcome === 'not_loaded'))
}

/** Returns the path of the main file as on the disk; undefined if the manifest does not list it. */
export function mainFileOf ({ metadata }: CatalogSkill, { files }: FileList): string | undefined {
  const name = basename(metadata.path)
  return files.some(({ path }) => path === name) ? name : undefined
}

/** Checks that clients read the same values: they parse strictly, and see repaired frontmatter differently. */
function checkFrontmatter ({ metadata, findings }: CatalogSkill, mainFile: string | undefined): Finding[] {
  const differs = (reason: string, fix: string, line: number) => [{
    ...finding('discovery_frontmatter_differs', `the skill is in no discovery index because ${reason}`, fix),
    file: basename(metadata.path),
    line,
    column: 1
  }]
  const invalid = findings.find(({ code }) => code === 'yaml_repaired' || code === 'yaml_not_portable')
  if (invalid !== undefined) {
    return differs('its frontmatter is not valid YAML as it stands', invalid.fix, invalid.line ?? 1)
  }
  // Clients remove a byte order mark when they decode.
  const text = mainFile?.replace(/^\uFEFF/, '') ?? ''
  const frontmatter = CLIENT_FRONTMATTER.exec(text)?.[0]
  if (frontmatter === undefined) {
    return differs("the first line of SKILL.md is not exactly '---'",
      "Remove the spaces after the '---' in the first line", 1)
  }
  if (REST_OF_FENCE.test(text.slice(frontmatter.length))) return []
  return differs("a line inside its frontmatter begins with '---'",
    "Indent the line inside the frontmatter that begins with '---'", frontmatter.split('\n').length)
}

function checkPaths (paths: readonly string[]): Finding[] {
  const unsafe = paths.filter((path) => UNSAFE_PATH.test(path) || isTakenForMain(path))
  if (unsafe.length > 0) {
    return findingOnFiles('discovery_path_unsafe', unsafe,
      'the skill is in no discovery index because clients refuse names of its files',
      'Rename the files so that no name has a backslash, begins with a letter and a colon, or looks like SKILL.md')
  }
  const notPlain = paths.filter((path) => !LEGACY_PATH.test(path) || LEGACY_RESERVED.test(path))
  return findingOnFiles('discovery_path_not_plain', notPlain,
    'the skill is not in the discovery index 0.1.0, which cannot name some of its files',
    "Name the files in ASCII, without '..', '?', '#', '%', '[' and ']', if clients of that version matter")
}

function checkDescription ({ frontmatter }: CatalogSkill): Finding[] {
  const { length } = ownText(frontmatter, 'description')
  if (length <= MAX_DISCOVERY_DESCRIPTION_UNITS) return []
  const sentence = 'the skill is not in the discovery index 0.2.0, whose clients count ' +
    `${length} UTF-16 units in its description, more than ${MAX_DISCOVERY_DESCRIPTION_UNITS}`
  const excess = length - MAX_DISCOVERY_DESCRIPTION_UNITS
  const fix = `Shorten description by at least ${excess} units: an emoji counts as two`
  return [finding('discovery_description_too_long', sentence, fix, 'description')]
}

function checkSizes ({ files }: FileList): Finding[] {
  const bytes = bytesOf({ files })
  if (files.length > MAX_DISCOVERY_FILES || bytes > MAX_DISCOVERY_UNPACKED_BYTES) {
    const sentence = 'the skill is not in the discovery index 0.2.0, whose clients unpack at most ' +
      `${MAX_DISCOVERY_FILES} files and ${MAX_DISCOVERY_UNPACKED_BYTES} bytes`
    const fix = `Split the skill, which has ${files.length} files and ${bytes} bytes`
    return [finding('discovery_archive_too_large', sentence, fix)]
  }
  return findingOnFiles('discovery_file_large',
    files.filter(({ size_bytes: size }) => size > ADVISED_DISCOVERY_FILE_BYTES).map(({ path }) => path),
    `one client of the discovery index 0.1.0 cuts files after ${ADVISED_DISCOVERY_FILE_BYTES} bytes`,
    'Split the files that are larger')
}

function checkInternal ({ frontmatter }: CatalogSkill): Finding[] {
  if (own(own(frontmatter, 'metadata'), 'internal') !== true) return []
  return [finding('discovery_internal',
    'the skill is in the discovery indexes, and some clients show it only when asked for by its name',
    'Remove metadata.internal if everybody should see the skill', 'metadata')]
}
