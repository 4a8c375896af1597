import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { buildService, type Service } from '../helper/build.ts'
import { differences, installSkills, serveOnly } from '../helper/skills-client.ts'
import { skill, skillText } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))
const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

t.test('the skills client installs every example skill byte for byte, and drops nothing that an index lists, however ' +
  'odd', async (t) => {
  const service = await buildService(t, {
    files: {
      bom: { 'SKILL.md': `\uFEFF${skillText('bom')}` },
      casing: { 'skill.md': skillText('casing'), 'a b.md': 'x' },
      'closing-fence': { 'SKILL.md': '---\nname: closing-fence\ndescription: d\n---' },
      colon: { 'SKILL.md': '---\nname: colon\ndescription: Use when: asked\n---\nText\n' },
      crlf: { 'SKILL.md': skillText('crlf').replaceAll('\n', '\r\n') },
      dashes: { 'SKILL.md': '---\nname: dashes\ndescription: a\n----: c\n---\nText\n' },
      dots: skill('dots', { 'a..b.md': 'x', 'c#d?e%20[f].md': 'x', '$&+,;=@~!\'()*.md': 'x' }),
      emoji: { 'SKILL.md': `---\nname: emoji\ndescription: ${'\u{1F600}'.repeat(600)}\n---\nText\n` },
      fence: { 'SKILL.md': skillText('fence').replace('---', '---  ') },
      folded: { 'SKILL.md': '---\nname: folded\ndescription: >-\n  one\n  two\nmetadata: {a: "b"}\n---\nText\n' },
      invalid: { 'SKILL.md': '# No frontmatter\n' },
      plain: skill('plain', { '$&+,;=@~!\'()*"<>|^`{}.md': 'x', ' lead.md': 'x' }),
      slash: skill('slash', { 'a\\b.md': 'x' })
    }
  })
  cpSync(EXAMPLES, service.root, { recursive: true })
  const examples = readdirSync(EXAMPLES)
  const expected = {
    '/.well-known/agent-skills/': ['bom', 'casing', 'closing-fence', 'crlf', 'dots', 'folded', 'plain'],
    '/.well-known/skills/': ['bom', 'casing', 'closing-fence', 'crlf', 'emoji', 'folded', 'plain']
  }
  for (const [prefix, odd] of Object.entries(expected)) {
    await t.test(`through ${prefix}`, async (t) => {
      const names = [...odd, ...examples].sort()
      t.same(await listedNames(service, prefix), names)
      const gateway = await serveOnly(t, prefix, service.url)
      const { succeeded, output, folder } = await installSkills(gateway, { cli, cwd: t.testdir() })
      t.ok(succeeded, output)
      t.notMatch(output, 'OFFLINE')
      t.match(output, `Found ${names.length} skills`)
      t.same(readdirSync(folder), names)
      // The client writes decoded text, so that a byte order mark is gone, and gives the main file its usual name.
      const changed = { bom: ['SKILL.md'], casing: ['skill.md', 'SKILL.md'] }
      for (const name of names) {
        t.same(differences(join(service.root, name), join(folder, name)), { [name]: [], ...changed }[name], name)
      }
    })
  }
})

async function listedNames (service: Service, prefix: string): Promise<readonly string[]> {
  const { skills } = (await service.fetch(`${prefix}index.json`)).json() as {
    readonly skills: ReadonlyArray<{ readonly name: string }>
  }
  return skills.map(({ name }) => name)
}
