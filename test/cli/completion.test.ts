import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { COMMANDS } from '../../src/cli/commands.ts'
import { runCommandLine } from '../../src/cli/run.ts'
import { until } from '../helper/skills.ts'

/** Runs a shell in a terminal of its own. */
const TERMINAL = '/usr/bin/script'
const noZsh = spawnSync('zsh', ['--version']).status !== 0 ? 'there is no zsh' : !existsSync(TERMINAL) && `there is no ${TERMINAL}`

async function scriptFor (shell: string): Promise<string> {
  let out = ''
  t.equal(await runCommandLine(['completion', shell], { env: {}, cwd: '/', print: (text) => { out += text } }, () => {}), 0)
  return out
}

/** What bash offers for a command line; `|` stands before the word that is being written. */
function completer (t: Test, script: string): (...words: readonly string[]) => readonly string[] {
  const cwd = t.testdir({ skills: {}, 'two words': {}, 'a.yaml': '' })
  writeFileSync(join(cwd, 'script'), script)
  return (...words) => {
    const program = 'source ./script; COMP_WORDS=(skillserve "$@"); COMP_CWORD=$#; _skillserve; printf "%s\\n" "$' + '{COMPREPLY[@]}"'
    return execFileSync('bash', ['--norc', '-c', program, 'bash', ...words], { cwd, encoding: 'utf8' }).split('\n').filter((line) => line !== '')
  }
}

t.test('K82: completion in bash has commands, flags, values and paths', async (t) => {
  const complete = completer(t, await scriptFor('bash'))
  t.strictSame(complete('va'), ['validate'])
  t.strictSame(complete('').filter((word) => Object.hasOwn(COMMANDS, word)), Object.keys(COMMANDS))
  t.strictSame(complete('s'), ['serve', 'sign', 'sync', 'skills'])
  t.strictSame(complete('tw'), ['two words'], 'one folder')
  t.strictSame(complete('validate', '--fi'), ['--fix'])
  t.strictSame(complete('validate', '--format', 's'), ['sarif'])
  t.strictSame(complete('validate', '--format', '=', 's'), ['sarif'], '--format=s')
  t.strictSame(complete('validate', '--format', '='), ['text', 'json', 'sarif', 'github'])
  t.ok(complete('validate', '--target', '').includes('claude-code'))
  t.strictSame(complete('help', 'val'), ['validate'])
  t.strictSame(complete('completion', ''), ['bash', 'zsh'])
  t.strictSame(complete('validate', 'a.'), ['a.yaml'])
  t.strictSame(complete('skills', '--por'), ['--port'], 'the default command')
  t.ok(complete('serve', '--').includes('--locked'), 'flags that may have a value')
})

t.test('K82: completion in zsh, on its command line', { skip: noZsh }, async (t) => {
  const cwd = t.testdir({ script: await scriptFor('zsh'), 'two words': {} })
  const terminal = spawn(TERMINAL, ['-qec', 'exec zsh -f -i', '/dev/null'], { cwd, env: { PATH: process.env['PATH'], TERM: 'dumb', PS1: '> ', HOME: cwd }, stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => { terminal.kill('SIGKILL') })
  let out = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  const printed = async (text: string): Promise<void> => {
    await until(() => out.includes(text))
    out = ''
  }
  // The echo of the line has the quotes.
  terminal.stdin.write('source ./script && echo rea""dy\n')
  await printed('ready')
  for (const [typed, completed] of [
    ['vali', 'validate'], ['validate --form', 'validate --format'], ['validate --format sa', 'validate --format sarif'], ['validate --format=sa', 'validate --format=sarif'],
    ['completion z', 'completion zsh'], ['tw', 'two\\ words/']
  ] as const) {
    terminal.stdin.write(`skillserve ${typed}\t`)
    await printed(`skillserve ${completed}`)
    t.pass(completed)
    // Empties the line.
    terminal.stdin.write('\u0015')
  }
  terminal.stdin.write('exit\n')
  await once(terminal, 'exit')
})

t.test('K82: a shell without completion gets a sentence', async (t) => {
  for (const argv of [['completion'], ['completion', 'fish'], ['completion', 'tcsh'], ['completion', 'bash', 'zsh']]) {
    let errors = ''
    t.equal(await runCommandLine(argv, { env: {}, cwd: '/', print: () => {} }, (text) => { errors += text }), 1)
    t.match(errors, /^skillserve: completion [^\n]+\n$/)
    t.notMatch(errors, 'did you mean', 'another shell is no mistyped one')
  }
})
