import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/
/** The text between the heading and the next one. */
const LICENSE_SECTION = /^#+ licen[cs]e\s((?:(?!#+ ).*\n?)+)/im
const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i

/**
 * The notices of the packages whose code is in a bundle: name, version, license and the license's text.
 * @param {import('esbuild').Metafile} metafile paths relative to the working folder
 * @returns {string}
 * @throws if a package has no text of its license
 */
export function thirdPartyNotices (metafile) {
  const notices = Array.from(bundledFolders(metafile), (folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const texts = readdirSync(folder).filter((file) => LICENSE_FILE.test(file)).sort().map((file) => readFileSync(join(folder, file), 'utf8').trim())
    if (texts.length === 0) texts.push(licenseOfReadme(folder))
    return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
  }).sort()
  return `The program contains code of ${notices.length} packages.\n\n${notices.map((notice) => `${'-'.repeat(80)}\n${notice}`).join('\n')}`
}

function bundledFolders ({ inputs }) {
  const folders = Object.keys(inputs).map((path) => PACKAGE_FOLDER.exec(path)?.[0]).filter((folder) => folder !== undefined)
  return new Set(folders)
}

function licenseOfReadme (folder) {
  const [file = ''] = readdirSync(folder).filter((file) => /^readme\b/i.test(file))
  const [, text] = LICENSE_SECTION.exec(file === '' ? '' : readFileSync(join(folder, file), 'utf8')) ?? []
  if (text === undefined) throw new Error(`${folder} has no text of its license`)
  return text.trim()
}
