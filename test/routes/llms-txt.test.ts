import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { skill, skillText, until } from '../helper/skills.ts'

/** The form of the convention: a title, a summary, then sections of links with what is said of them. */
const FORM = /^# [^\n]+\n\n> [^\n]+\n\n(?:[^#\n][^\n]*\n)*(?:\n## [^\n]+\n\n(?:- \[[^\n]+\]\([^)\n]+\): [^\n]+\n)+)+$/

t.test('K78: /llms.txt lists the valid skills, with links that lead to their main files', async (t) => {
  const { fetch, root, skills } = await buildService(t, {
    files: { one: skill('one'), 'two-three': skill('two-three'), broken: { 'SKILL.md': 'x' }, sly: { 'SKILL.md': '---\nname: sly\ndescription: "a](x) <b> \\n## B"\n---\nx' } }
  })
  const { status, headers, text } = await fetch('/llms.txt')
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'text/plain; charset=utf-8')
  t.match(text, FORM)
  t.match(text, '- [one](/skills/one/files/SKILL.md): What one is for\n')
  t.notMatch(text, /broken/)
  for (const [, path = ''] of text.matchAll(/^- \[(?:[^\]\\]|\\.)*\]\(([^)]+)\)/gm)) t.equal((await fetch(path)).status, 200, path)

  writeFileSync(join(root, 'one/SKILL.md'), skillText('one').replace('What one', 'What else one'))
  await until(async () => (await skills.find('one'))?.metadata.description.startsWith('What else') === true)
  t.match((await fetch('/llms.txt')).text, 'What else one is for')
})

t.test('K78: without skills the list is empty, and without a folder it is an error', async (t) => {
  const empty = await buildService(t, { files: {} })
  t.match((await empty.fetch('/llms.txt')).text, FORM)
  const none = await buildService(t, { files: null })
  t.equal((await none.fetch('/llms.txt')).status, 503)
})
