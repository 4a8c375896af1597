import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import t, { type Test } from 'tap'
import { skill } from '../helper/skills.ts'

// Each run starts several processes.
t.setTimeout(120_000)

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const ACTION = join(ROOT, '.github/actions/validate')

interface Step {
  readonly run: string
  readonly env: Readonly<Record<string, string>>
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>
  readonly runs: { readonly steps: readonly Step[] }
}

function repository (t: Test): string {
  const cwd = t.testdir({
    pkg: { skills: { good: skill('good'), 'b|<d>': { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' } } }
  })
  execFileSync('git', ['init', '-q', cwd])
  return cwd
}

/** Runs the steps of the action as the runner of GitHub does. */
function runAction (workspace: string, inputs: Readonly<Record<string, string>>) {
  const action = load(readFileSync(join(ACTION, 'action.yml'), 'utf8')) as Action
  const summary = join(workspace, 'summary.md')
  const valueOf = (text: string): string => text.replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_whole, name: string) =>
    inputs[name] ?? action.inputs[name]?.default ?? `no input ${name}`)
  const [step, ...others] = action.runs.steps
  const script = join(workspace, 'step.sh')
  writeFileSync(script, step?.run ?? '')
  const env = Object.fromEntries(Object.entries(step?.env ?? {}).map(([name, text]) => [name, valueOf(text)]))
  const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
    cwd: workspace,
    encoding: 'utf8',
    env: {
      PATH: process.env['PATH'],
      GITHUB_ACTION_PATH: ACTION,
      GITHUB_WORKSPACE: workspace,
      GITHUB_STEP_SUMMARY: summary,
      ...env
    }
  })
  return { status, stdout, stderr, others, summary: existsSync(summary) ? readFileSync(summary, 'utf8') : '' }
}

t.test('K98: the action annotates lines, writes a table, and has the exit code of the report', async (t) => {
  const cwd = repository(t)
  const failed = runAction(cwd, { paths: 'pkg/skills\n', targets: 'spec,codex' })
  t.match(failed, { status: 1, stderr: '', others: [] })
  t.match(failed.stdout, /^::error file=pkg\/skills\/b\|<d>\/SKILL\.md,line=2,col=7,title=name_folder_mismatch::/)
  t.match(failed.summary, '### 2 skills: 1 errors, 0 warnings\n')
  t.match(failed.summary, '| <code>pkg/skills/b&#124;&#60;d&#62;</code> | 1 | 0 | 0 | spec refused, codex ok |\n')
  t.match(failed.summary, '| <code>pkg/skills/good</code> | 0 | 0 | 0 | spec ok, codex ok |\n')
  for (const { inputs, status, stdout } of [
    {
      inputs: { paths: 'pkg/skills', 'fail-on': 'never', annotations: 'false' },
      status: 0,
      stdout: /^pkg\/skills\/.*:2:7 /
    },
    { inputs: { paths: '--fix\n$(touch hacked)' }, status: 2, stdout: /^$/ }
  ]) t.match(runAction(cwd, inputs), { status, stdout }, JSON.stringify(inputs))
  t.notOk(existsSync(join(cwd, 'hacked')))
})

t.test('K98: the pre-commit hook validates the skills that are committed', async (t) => {
  const cwd = repository(t)
  const [hook] = load(readFileSync(join(ROOT, '.pre-commit-hooks.yaml'), 'utf8')) as
    ReadonlyArray<{ readonly entry: string, readonly language: string, readonly files: string }>
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as
    { readonly bin: { readonly skillserve: string } }
  mkdirSync(join(cwd, '.bin'))
  symlinkSync(join(ROOT, manifest.bin.skillserve), join(cwd, '.bin/skillserve'))
  const commit = (...paths: readonly string[]) => {
    const files = paths.filter((path) => new RegExp(hook?.files ?? '').test(path))
    const [command = '', ...args] = hook?.entry.split(' ') ?? []
    const env = { PATH: `${join(cwd, '.bin')}:${process.env['PATH'] ?? ''}` }
    return spawnSync(command, [...args, ...files], { cwd, encoding: 'utf8', env })
  }
  const good = commit('pkg/skills/good/SKILL.md', 'pkg/skills/good/other.md')
  t.match(good, { status: 0, stdout: /^1 skill: no findings/ })
  t.match(commit('pkg/skills/good/SKILL.md', 'pkg/skills/b|<d>/SKILL.md'), {
    status: 1, stdout: /^pkg\/skills\/b\|<d>\/SKILL\.md:2:7 {2}error {2}name_folder_mismatch[^]*\n2 skills: 1 error/
  })
  t.equal(hook?.language, 'node')
})
