import t from 'tap'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { parseSkillBytes } from '../../../src/core/format/main-file.ts'
import type { CatalogSkill, Finding, Manifest } from '../../../src/core/shared/skill.ts'
import { isListed, wellKnownFindings } from '../../../src/core/listing/discovery.ts'
import { skillText } from '../../helper/skills.ts'

interface Case {
  readonly document?: string
  /** Paths with their sizes in bytes. */
  readonly files?: Readonly<Record<string, number>>
  readonly mainFile?: string
}

function findingsOf ({ document = skillText('demo'), files = {}, mainFile = 'SKILL.md' }: Case): readonly Finding[] {
  const { frontmatter, summary, findings } = parseSkillBytes(Buffer.from(document), 'demo')
  const skill: CatalogSkill = {
    name: 'demo',
    metadata: { ...summary, type: 'project', skillPath: '/skills/demo', path: `/skills/demo/${mainFile}` },
    frontmatter,
    findings,
    valid: findings.every(({ severity }) => severity !== 'error')
  }
  const manifest: Manifest = {
    skill_name: 'demo',
    revision: sha256(''),
    files: Object.entries({ [mainFile]: 100, ...files }).map(([path, size]) => ({ path, size_bytes: size, media_type: '', digest: sha256(path) }))
  }
  return wellKnownFindings(skill, manifest, document)
}

const frontmatter = (lines: string) => `---\n${lines}---\nText\n`

/** What is wrong, by the one code that it has, and the indexes that the skill stays in. */
const table: ReadonlyArray<readonly [what: string, example: Case, code: string | undefined, versions: string]> = [
  ['a plain skill', {}, undefined, '0.1.0 0.2.0'],
  ['CRLF', { document: skillText('demo').replaceAll('\n', '\r\n') }, undefined, '0.1.0 0.2.0'],
  ['a byte order mark', { document: `\uFEFF${skillText('demo')}` }, undefined, '0.1.0 0.2.0'],
  ['no line end after the closing fence', { document: '---\nname: demo\ndescription: d\n---' }, undefined, '0.1.0 0.2.0'],
  ['blanks after the closing fence', { document: '---\nname: demo\ndescription: d\n--- \t\nText\n' }, undefined, '0.1.0 0.2.0'],
  ['another casing of the main file', { mainFile: 'skill.MD' }, undefined, '0.1.0 0.2.0'],
  ['a file with a blank in its name', { files: { 'a b.md': 1 } }, undefined, '0.1.0 0.2.0'],
  ['blanks after the opening fence', { document: skillText('demo').replace('---', '--- ') }, 'discovery_frontmatter_differs', ''],
  ['a line in the frontmatter that begins with dashes', { document: frontmatter('name: demo\ndescription: a\n# b\n----: c\n') }, 'discovery_frontmatter_differs', ''],
  ['an unquoted colon', { document: frontmatter('name: demo\ndescription: Use when: asked\n') }, 'discovery_frontmatter_repaired', ''],
  ['no description', { document: frontmatter('name: demo\n') }, 'discovery_skill_invalid', ''],
  ['a name that is a number', { document: frontmatter('name: 123\ndescription: d\n') }, 'discovery_skill_invalid', ''],
  ['another name than the folder', { document: skillText('other') }, 'discovery_skill_invalid', ''],
  ['no frontmatter', { document: '# Demo\n' }, 'discovery_skill_invalid', ''],
  ['two main files', { files: { 'skill.md': 1 } }, 'discovery_main_file_ambiguous', ''],
  ['a backslash', { files: { 'a\\b.md': 1 } }, 'discovery_path_unsafe', ''],
  ['a drive letter', { files: { 'c:x.md': 1 } }, 'discovery_path_unsafe', ''],
  ['a colon elsewhere', { files: { 'docs/c:x.md': 1 } }, undefined, '0.1.0 0.2.0'],
  ...['é.md', 'a..b.md', 'c#d.md', 'e?f.md', 'g%20h.md', '[x].md', 'tab\t.md', 'line\n.md', 'a..\nb', 'end '].map((path) =>
    [`a file called ${JSON.stringify(path)}`, { files: { [path]: 1 } }, 'discovery_path_not_plain', '0.2.0'] as const),
  ['1,024 code points, more UTF-16 units', { document: frontmatter(`name: demo\ndescription: ${'\u{1F600}'.repeat(1024)}\n`) }, 'discovery_description_too_long', '0.1.0'],
  ['1,024 UTF-16 units', { document: frontmatter(`name: demo\ndescription: ${'\u{1F600}'.repeat(512)}\n`) }, undefined, '0.1.0 0.2.0'],
  ['1,000 files', { files: Object.fromEntries(Array.from({ length: 999 }, (_, index) => [`f${index}`, 1])) }, undefined, '0.1.0 0.2.0'],
  ['1,001 files', { files: Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, 1])) }, 'discovery_archive_too_large', '0.1.0'],
  ['50 MiB', { files: { a: 1_048_576, ...Object.fromEntries(Array.from({ length: 48 }, (_, index) => [`f${index}`, 1_048_576])), z: 1_048_476 } }, undefined, '0.1.0 0.2.0'],
  ['more than 50 MiB', { files: { big: 52_428_800 } }, 'discovery_archive_too_large', '0.1.0'],
  ['a file over 1 MiB', { files: { big: 1_048_577 } }, 'discovery_file_large', '0.1.0 0.2.0'],
  ['metadata.internal', { document: frontmatter('name: demo\ndescription: d\nmetadata:\n  internal: true\n') }, 'discovery_internal', '0.1.0 0.2.0']
]

t.test('each thing that clients drop a skill for has a finding, and keeps it out of the indexes that it breaks', (t) => {
  for (const [what, example, code, versions] of table) {
    const findings = findingsOf(example)
    t.same(findings.map((finding) => finding.code), code === undefined ? [] : [code], what)
    t.equal((['0.1.0', '0.2.0'] as const).filter((version) => isListed(findings, version)).join(' '), versions, what)
    for (const { severity, message, fix } of findings) {
      t.equal(severity, 'info', what)
      t.match(message, /[^.]$/, 'a sentence without a full stop')
      t.notMatch(message + fix, /[\t\n]/, 'names are quoted')
    }
  }
  t.end()
})

t.test('a main file that cannot be read, or is not in the manifest', (t) => {
  const [{ code } = { code: '' }] = wellKnownFindings(
    { name: 'demo', metadata: { name: 'demo', description: 'd', type: 'project', skillPath: '/demo', path: '/demo/SKILL.md' }, frontmatter: {}, findings: [], valid: true },
    { files: [] }, skillText('demo'))
  t.equal(code, 'discovery_main_file_missing')
  t.end()
})
