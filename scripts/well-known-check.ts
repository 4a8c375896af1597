import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startProcess } from '../test/helper/process.ts'
import { differences, installSkills, serveOnly } from '../test/helper/skills-client.ts'
import { type LongRun, readCommandLine, runLong } from './long-run.ts'

const USAGE = `
npm run well-known:check -- [NODE…]

Installs every example skill with a newer \`skills\` client than the tests use, through each well-known index of the
built service, and compares the bytes. Each NODE is a program of Node 22.20 or later (default: the one that runs this).
The client is installed from the npm registry into a temporary folder. If that fails, the check is skipped. The exit
code is 1 if anything differs.
`

const CLIENT = 'skills@1.7.4'
const EXAMPLES = fileURLToPath(new URL('../skills/', import.meta.url))

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)

await runLong(async (run) => {
  const folder = run.folder('well-known')
  const nodes = (positionals.length > 0 ? positionals : [process.execPath]).filter((node) => canRunClient(run, node))
  if (nodes.length === 0 || !await installClient(run, folder)) return 'skipped'
  return await check(run, nodes, folder)
})

function canRunClient (run: LongRun, node: string): boolean {
  const [major = 0, minor = 0] = execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1).split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 20)) return true
  run.print(`SKIPPED: ${CLIENT} needs Node 22.20 or later, ${node} is ${major}.${minor}`)
  return false
}

async function installClient (run: LongRun, folder: string): Promise<boolean> {
  run.part(`installing ${CLIENT}`)
  const installing = promisify(execFile)('npm',
    ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', CLIENT], {
      timeout: 120_000
    })
  run.teardown(() => { installing.child.kill('SIGTERM') })
  try {
    await installing
    return true
  } catch {
    run.print(`SKIPPED: ${CLIENT} could not be installed; is there a network?`)
    return false
  }
}

async function check (run: LongRun, nodes: readonly string[], folder: string): Promise<boolean> {
  const service = await startProcess(run, { args: [EXAMPLES] })
  const names = readdirSync(EXAMPLES)
  let isSame = true
  for (const node of nodes) {
    for (const prefix of ['/.well-known/agent-skills/', '/.well-known/skills/']) {
      run.part(`${prefix} with ${node}`)
      const url = await serveOnly(run, prefix, service.url)
      const cli = join(folder, 'node_modules/skills/bin/cli.mjs')
      const cwd = mkdtempSync(join(folder, 'run-'))
      const { succeeded, output, folder: installed } = await installSkills(url, { cli, node, cwd })
      const different = names.flatMap((name) =>
        differences(join(EXAMPLES, name), join(installed, name)).map((path) => `${name}/${path}`))
      const isRight = succeeded && different.length === 0 && readdirSync(installed).join() === names.join()
      run.print(
        `${isRight ? 'ok' : 'DIFFERENT'}: ${CLIENT}, ${node}, ${prefix}: ${names.length} skills ${different.join(', ')}`)
      if (!isRight) run.print(output)
      isSame &&= isRight
    }
  }
  const { code } = await service.stop()
  return isSame && code === 0
}
