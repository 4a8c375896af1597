import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runCommandLine } from '../../src/cli/run.ts'
import { launch } from '../helper/process.ts'
import { skill, skills, skillText, until } from '../helper/skills.ts'

/** Runs a command in a terminal of its own. */
const TERMINAL = '/usr/bin/script'

t.test('K4, K77: dev prints each skill once at the start, links that are allowed among them, and its findings after each save; test/ui/pages/browser.test.ts has its open page', async (t) => {
  const folder = t.testdir({ real: { linked: skill('linked') }, skills: { ...skills('a', 'b', 'c'), linked: t.fixture('symlink', '../real/linked') } })
  const preview = launch(t, { args: ['dev', join(folder, 'skills'), '--port', '0', '--allow-links', join(folder, 'real')], env: {} })
  await preview.printed(/Preview at http:\/\/127\.0\.0\.1:\d+/)
  await preview.printed(/linked: nothing to mend; about \d+ tokens in each turn, \d+ in use\n/)
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(preview.stdout()) ?? []
  writeFileSync(join(folder, 'skills/a/SKILL.md'), '---\nname: other\ndescription: d\n---\nx\n')
  await preview.printed(/a: about/)
  await preview.printed(/error SKILL\.md:2: .*\. \w.*\.\n/)
  for (const name of ['a', 'b', 'c', 'linked']) t.equal(preview.stdout().split(`${name}: nothing to mend`).length - 1, 1, name)
  writeFileSync(join(folder, 'skills/a/SKILL.md'), skillText('other', 'More.\n'))
  await preview.printed(/a: about[^]*a: about/)
  const { port } = new URL(url)
  t.match(await launch(t, { args: ['dev', join(folder, 'skills'), '--port', port] }).ended, { code: 1, stderr: `skillserve: port ${port} of 127.0.0.1 is in use, --port chooses another (0 takes any free port)\n` })
  process.kill(preview.pid, 'SIGTERM')
  t.match(await preview.ended, { code: 0, stderr: '' })
})

t.test('K77: dev opens the address in the browser of whoever sits at the terminal', { skip: !existsSync(TERMINAL) && `there is no ${TERMINAL}` }, async (t) => {
  const folder = t.testdir({ skills: { demo: skill('demo') }, bin: { 'xdg-open': '#!/bin/sh\necho "$1" > "$OPENED.new" && mv "$OPENED.new" "$OPENED"\n' } })
  chmodSync(join(folder, 'bin/xdg-open'), 0o755)
  const opened = join(folder, 'opened')
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const terminal = spawn(TERMINAL, ['-qec', `exec '${process.execPath}' '${main}' dev '${join(folder, 'skills')}' --port 0`, '/dev/null'], {
    env: { PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter), DISPLAY: ':0', OPENED: opened }, stdio: ['pipe', 'ignore', 'ignore']
  })
  t.teardown(() => { terminal.kill('SIGKILL') })
  await until(() => existsSync(opened))
  t.match(readFileSync(opened, 'utf8'), /^http:\/\/127\.0\.0\.1:\d+\n$/)
  terminal.kill('SIGTERM')
})

t.test('K77: dev needs a folder of skills', async (t) => {
  let errors = ''
  t.equal(await runCommandLine(['dev'], { env: {}, cwd: t.testdir({}), print: () => {} }, (text) => { errors += text }), 1)
  t.match(errors, /dev needs a folder of skills/)
})
