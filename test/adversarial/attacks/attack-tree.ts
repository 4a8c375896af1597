/** What attacks are aimed at: skills with secrets around and inside them, and skills that are attacks themselves. */

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MAX_FRONTMATTER_BYTES, MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { skillText } from '../../helper/skills.ts'

/** Stands in every file that no route may open. */
export const CANARY = 'CANARY-9d41c7'

/** Paths as an attacker would like to have them read, from the folder of the skill `demo`. */
export const CANARY_PATHS = [
  '../../outside/secret.txt', '../sibling/secret.txt', '../../skills-evil/secret.txt',
  '../demo-evil/../sibling/secret.txt', '../README.md',
  '.env', 'sub/.env', '.git/config', '.hg/store', 'references/../.env', './.git/config', '.hidden/SKILL.md',
  'up/sibling/secret.txt', 'up/README.md', 'out/secret.txt', 'secret.txt', '.env.local', 'notes.md~', '.notes.md.swp',
  'node_modules/x/key', 'sub/ignored.txt', 'private/key', 'private/../private/key', 'ignored.md', 'env.md', 'git.md',
  'git/config', 'aside/secret.txt'
] as const

const FILES: Readonly<Record<string, string>> = {
  'outside/secret.txt': CANARY,
  'skills-evil/secret.txt': CANARY,
  'skills/README.md': CANARY,
  'skills/.hidden/SKILL.md': CANARY,
  'skills/.git/config': CANARY,
  'skills/sibling/SKILL.md': skillText('sibling'),
  'skills/sibling/secret.txt': CANARY,
  'skills/demo/SKILL.md': skillText('demo'),
  'skills/demo/references/a.md': '# A\n',
  'skills/demo/.env': CANARY,
  'skills/demo/sub/.env': CANARY,
  'skills/demo/sub/b.txt': 'b',
  'skills/demo/.git/config': CANARY,
  'skills/demo/.skillignore': 'ignored.txt\n/private/\n',
  'skills/demo/.env.local': CANARY,
  'skills/demo/notes.md~': CANARY,
  'skills/demo/.notes.md.swp': CANARY,
  'skills/demo/node_modules/x/key': CANARY,
  'skills/demo/sub/ignored.txt': CANARY,
  'skills/demo/private/key': CANARY,
  'skills/demo/.hg/store': CANARY,
  'skills/demo/big.bin': 'x'.repeat(300_000),
  'skills/single/SKILL.md': skillText('single'),
  'skills/broken/SKILL.md': '---\nname: [\n---\n',
  'skills/__proto__/SKILL.md': skillText('__proto__'),
  'skills/constructor/SKILL.md': skillText('constructor')
}

const LINKS: Readonly<Record<string, string>> = {
  'skills/outside': '../outside',
  'skills/demo/up': '..',
  'skills/demo/out': '../../outside',
  'skills/demo/secret.txt': '../../outside/secret.txt',
  'skills/demo/aside': '../sibling',
  'skills/demo/env.md': '.env',
  'skills/demo/ignored.md': 'sub/ignored.txt',
  'skills/demo/git.md': '.git/config',
  'skills/demo/git': '.git',
  'skills/demo/loop': 'loop'
}

/** Writes it below a folder; `skills` in it is the root. */
export function writeAttackTree (folder: string): void {
  for (const [path, text] of Object.entries(FILES)) writeFile(join(folder, path), text)
  for (const [path, target] of Object.entries(LINKS)) symlinkSync(target, join(folder, path))
}

export function writeBombs (root: string): void {
  for (const [name, text] of Object.entries(BOMBS)) writeFile(join(root, name, 'SKILL.md'), text)
}

function writeFile (path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A main file with this between its fences. */
export function withFrontmatter (yaml: string): string {
  return `---\n${yaml}\n---\nBody.\n`
}

/** As often as it fits into so many bytes. */
export function filled (unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
}

const KILOBYTES = MAX_FRONTMATTER_BYTES - 64
const MEGABYTE = MAX_MAIN_FILE_BYTES - 256
const HEAD = 'name: bomb\ndescription: Boom\n'

/** Main files by the names of their skills: each is meant to take a parser, a pattern or a search long. */
export const BOMBS: Readonly<Record<string, string>> = {
  'bomb-aliases': withFrontmatter(
    `${HEAD}a0: &a0 [x, x]\n${Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n}, `.repeat(9)}]`).join('\n')}`),
  'bomb-merge': withFrontmatter(`${HEAD}a: &a {b: c}\n<<: [*a, *a, *a]`),
  'bomb-self': withFrontmatter(`${HEAD}a: &a [*a]`),
  'bomb-flow': withFrontmatter(`${HEAD}a: ${filled('[', KILOBYTES)}`),
  'bomb-flow-keys': withFrontmatter(`${HEAD}a: ${filled('{? [a]: {', KILOBYTES)}`),
  'bomb-questions': withFrontmatter(filled('? ', KILOBYTES)),
  'bomb-dashes': withFrontmatter(filled('- ', KILOBYTES)),
  'bomb-anchors': withFrontmatter(filled('&a ', KILOBYTES)),
  'bomb-tags': withFrontmatter(
    `${HEAD}a: !!js/function 'function () { process.exit(1) }'\nb: !!python/object/apply:os.system ["id"]\nc: !<tag:x> y`),
  'bomb-tag-names': withFrontmatter(`${HEAD}a: !${filled('%41', KILOBYTES)} x`),
  'bomb-binary': withFrontmatter(`${HEAD}a: !!binary ${filled('QUJD', KILOBYTES)}`),
  'bomb-timestamps': withFrontmatter(`${HEAD}a: 2001-12-14t21:59:43.${filled('1', KILOBYTES)}x`),
  'bomb-numbers': withFrontmatter(`${HEAD}a: ${filled('1_', KILOBYTES)}\nb: 1e999999\nc: -.inf\nd: .nan`),
  'bomb-sexagesimal': withFrontmatter(`${HEAD}a: ${filled('1:', KILOBYTES)}`),
  'bomb-names': withFrontmatter(`name: ${filled('a-', KILOBYTES)}!\ndescription: x`),
  'bomb-blanks': withFrontmatter(`name: bomb-blanks\ndescription: a${filled(' ', KILOBYTES)}b`),
  'bomb-quotes': withFrontmatter(`${HEAD}a: ${filled("''", KILOBYTES)}x`),
  'bomb-escapes': withFrontmatter(`${HEAD}a: "${filled('\\u0041', KILOBYTES)}`),
  'bomb-repairs': withFrontmatter(filled('a: b: c # d\n', KILOBYTES)),
  'bomb-objects': withFrontmatter(
    `${HEAD}__proto__: {polluted: true}\nconstructor: {prototype: {polluted: true}}\ntoString: 1\nvalueOf: 2`),
  'bomb-line': withFrontmatter(`${HEAD}a: ${filled('x', MEGABYTE)}`),
  'bomb-fences': filled('---\n', MEGABYTE),
  'bomb-almost-fences': `---\n${filled('--- x\n', MEGABYTE)}`,
  'bomb-rule': filled('-', MEGABYTE),
  'bomb-opening': `---${filled(' \t', MEGABYTE)}x`,
  'bomb-blank-lines': `---\n${filled('\n', MEGABYTE)}`,
  'bomb-carriage-returns': `---\n${HEAD}---\n${filled('\r\n---', MEGABYTE)}`,
  'bomb-dots': `---\n${filled('... \n', MEGABYTE)}`,
  'bomb-hidden': `---\nname: bomb-hidden\ndescription: x\n---\n${filled('\u200b', MEGABYTE)}`,
  'bomb-unspaced': `---\nname: bomb-unspaced\ndescription: x\n---\n${filled('\u3042\u6f22', MEGABYTE)}`,
  'bomb-ligatures': `---\nname: bomb-ligatures\ndescription: x\n---\n${filled('\ufdfa', MEGABYTE)}`,
  'bomb-accents': `---\nname: bomb-accents\ndescription: x\n---\na${filled('\u0301\u0323', MEGABYTE)}`,
  'bomb-voicing-marks': `---\nname: bomb-voicing-marks\ndescription: x\n---\na${filled('\uff9e\u0316', MEGABYTE)}`,
  'bomb-spaced-ligatures': `---\nname: bomb-spaced-ligatures\ndescription: x\n---\n${filled('\ufdfa ', MEGABYTE)}`,
  'bomb-words': `---\nname: bomb-words\ndescription: x\n---\n${Array.from({ length: 100_000 }, (_, n) => n.toString(36)).join(' ')}`,
  'bomb-large': `---\nname: bomb-large\ndescription: x\n---\n${filled('x', 2 * MEGABYTE)}`
}
