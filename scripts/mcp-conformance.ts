import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { buildApp } from '../src/app.ts'
import { createSkillManager } from '../src/core/skill-manager.ts'
import { readPackageVersion } from '../src/operator/package-files.ts'
import { createToolRegistry } from '../src/tools/registry.ts'
import { createTools } from '../src/tools/tools.ts'
import { type LongRun, readCommandLine, runLong } from './long-run.ts'

const USAGE = `
npm run mcp:conformance -- [DIR…]

Runs the official conformance suite and the Inspector against /mcp, in both versions of the protocol, with the skills
in DIR (default: the example skills). It prints one line for each check; the exit code is 1 if one differs from what
this script expects. Both programs are installed into a temporary folder, without install scripts. If that fails, the
check is skipped.
`

/**
 * Versions of the suite and the Inspector, pinned since their checks change with them. They need Node 22.19; the
 * service runs on 20.
 */
const NODE = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}@22.23.3`
const JUDGES = ['@modelcontextprotocol/conformance@0.2.0-alpha.12', '@modelcontextprotocol/inspector@2.12.0']

const TIMEOUT_MS = 300_000

/** Scenarios of every revision that the service speaks, and of the Skills extension. */
const PASSES: ReadonlySet<string> = new Set([
  'server-initialize', 'server-session-lifecycle', 'ping', 'tools-list', 'server-sse-polling',
  'server-sse-multiple-streams', 'resources-list',
  'sep-2164-resource-not-found', 'sep-2640-skills-directory', 'sep-2640-skills-enumeration',
  'sep-2640-skills-manifest', 'prompts-list',
  'dns-rebinding-protection', 'caching', 'http-header-validation', 'tasks-status-notifications',
  'input-required-result-missing-input-response',
  'input-required-result-unsupported-methods', 'input-required-result-ignore-extra-params',
  'input-required-result-validate-input'
])

const FIXTURES = 'calls a tool, resource or prompt of the test server that the suite was written for'
const NOT_OFFERED = 'a capability that the service does not declare'

/** Reasons of scenarios that fail, by pattern; the first match counts. */
const REASONS: ReadonlyArray<readonly [scenario: RegExp, reason: string]> = [
  [/^logging-set-level$/, `${NOT_OFFERED}: logging`],
  [/^completion-complete$/, `${NOT_OFFERED}: completions`],
  [/^tasks-/, `${NOT_OFFERED}: tasks`],
  [/^server-stateless$/, `${FIXTURES}; the checks without one pass`],
  [/^(?:tools-call|elicitation|json-schema|resources|prompts|http-custom-header|input-required-result)-/, FIXTURES]
]

const INSPECTIONS: ReadonlyArray<readonly string[]> = ['modern', 'legacy'].flatMap((era) => [
  ['--protocol-era', era, '--method', 'skills/list', '--verify', '--require-digests'],
  ['--protocol-era', era, '--method', 'tools/list', '--strict']
])

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs a program to its end; both outputs as one text. */
async function execute (run: LongRun, command: string, args: readonly string[], cwd: string): Promise<Ended> {
  // Without this variable the Inspector writes into the user's own catalog of servers.
  const env = { ...process.env, MCP_CATALOG_PATH: join(cwd, 'catalog.json') }
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS })
  // npm starts further processes, which SIGKILL of npm would not end.
  run.teardown(() => { child.kill('SIGTERM') })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number | null, output: stdout + stderr }
}

let differences = 0

function report (run: LongRun, name: string, isExpected: boolean, outcome: string): void {
  if (!isExpected) differences++
  run.print(`${isExpected ? 'as expected' : 'DIFFERENT  '}  ${name}: ${outcome}`)
}

/** The summary of the suite, a line for each scenario: `✓ ping: 1 passed, 0 failed`. */
function judgeScenarios (run: LongRun, output: string): void {
  const passed = new Map(Array.from(output.matchAll(/^([✓✗]) ([\w-]+): \d+ passed, \d+ failed/gm),
    ([, mark, name = '']) => [name, mark === '✓'] as const))
  for (const name of new Set([...PASSES, ...passed.keys()])) {
    const actual = passed.get(name)
    const reason = REASONS.find(([scenario]) => scenario.test(name))?.[1]
    if (actual === undefined) report(run, name, false, 'did not run')
    else if (PASSES.has(name)) report(run, name, actual, actual ? 'passes' : 'fails')
    else if (reason === undefined) report(run, name, false, 'a scenario that nothing is expected of')
    else report(run, name, !actual, actual ? 'passes now: put it on the list' : `fails: ${reason}`)
  }
}

async function judge (run: LongRun, roots: readonly string[], folder: string): Promise<void> {
  const skills = createSkillManager({ projectRoots: roots, watcher: false })
  const registry = createToolRegistry(createTools())
  const app = await buildApp({
    skills, registry, logger: pino({ level: 'silent' }), version: readPackageVersion(), host: '127.0.0.1'
  })
  try {
    await skills.initialize()
    const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/mcp`
    const node = join(folder, 'node_modules', NODE.slice(0, NODE.indexOf('@')), 'bin', 'node')
    const bin = (name: string) => join(folder, 'node_modules', '.bin', name)

    run.part('the conformance suite')
    judgeScenarios(run,
      (await execute(run, node, [bin('conformance'), 'server', '--url', url, '--suite', 'all'], folder)).output)
    for (const args of INSPECTIONS) {
      run.part(`inspector ${args.join(' ')}`)
      const { code, output } = await execute(run, node, [bin('mcp-inspector'), '--cli', url, ...args], folder)
      report(run, `inspector ${args.join(' ')}`, code === 0,
        code === 0 ? 'passes' : `exit ${code}\n${output.slice(-2000)}`)
    }
  } finally {
    await app.close()
    await skills.close()
  }
}

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)

await runLong(async (run) => {
  const folder = run.folder('mcp-conformance')
  run.part('installing the judges')
  const { code, output } = await execute(run, 'npm',
    ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder, NODE, ...JUDGES],
    folder)
  if (code !== 0) {
    const reason = output.split('\n').find((line) => line.includes('code')) ?? `npm ended with ${code}`
    run.print(`SKIPPED: the judges could not be installed; is there a network? ${reason}`)
    return 'skipped'
  }
  await judge(run, (positionals.length > 0 ? positionals : ['skills']).map((dir) => resolve(dir)), folder)
  run.print(`mcp-conformance: ${differences} differences`)
  return differences === 0
})
