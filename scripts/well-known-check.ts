/**
 * Installs every example skill with a newer `skills` client than the tests use, through each well-known index of the built
 * service, and compares the bytes: `npx tsx scripts/well-known-check.ts [NODE...]`, each NODE a program of Node 22.20 or
 * later (default: the one that runs this). The client comes from the npm registry into a temporary folder.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { differences, installSkills, serveOnly } from '../test/helper/skills-client.ts'

const CLIENT = 'skills@1.7.4'
const EXAMPLES = fileURLToPath(new URL('../skills/', import.meta.url))
const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** The skills that an index lists: 0.1.0 cannot name every file. */
const LISTED = {
  '/.well-known/agent-skills/': readdirSync(EXAMPLES),
  '/.well-known/skills/': readdirSync(EXAMPLES).filter((name) => name !== 'recettes-maison')
}

const folder = mkdtempSync(join(tmpdir(), 'well-known-'))
try {
  const nodes = process.argv.length > 2 ? process.argv.slice(2) : [process.execPath]
  const usable = nodes.filter(canRunClient)
  if (usable.length > 0 && installClient()) process.exitCode = await check(usable) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function canRunClient (node: string): boolean {
  const [major = 0, minor = 0] = execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1).split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 20)) return true
  console.log(`SKIPPED: ${CLIENT} needs Node 22.20 or later, ${node} is ${major}.${minor}`)
  return false
}

function installClient (): boolean {
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', CLIENT], { stdio: 'pipe', timeout: 120_000 })
    return true
  } catch {
    console.log(`SKIPPED: ${CLIENT} could not be installed; is there a network?`)
    return false
  }
}

async function check (nodes: readonly string[]): Promise<boolean> {
  const service = spawn(process.execPath, [MAIN, '--port', '0', EXAMPLES], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const origin = await listening(service.stdout)
    let isSame = true
    for (const node of nodes) {
      for (const [prefix, names] of Object.entries(LISTED)) isSame = await checkIndex(node, origin, prefix, names) && isSame
    }
    return isSame
  } finally {
    service.kill('SIGTERM')
    await once(service, 'exit')
  }
}

async function listening (stdout: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stdout })) {
    const url = /listening at (http:\/\/[^"\s]+)/.exec(line)?.[1]
    if (url === undefined) continue
    stdout.resume()
    return url
  }
  throw new Error('the service did not start; was it built?')
}

async function checkIndex (node: string, origin: string, prefix: string, names: readonly string[]): Promise<boolean> {
  const gateway = await serveOnly(prefix, origin)
  try {
    const cli = join(folder, 'node_modules/skills/bin/cli.mjs')
    const { succeeded, output, folder: installed } = await installSkills(gateway.url, { cli, node, cwd: mkdtempSync(join(folder, 'run-')) })
    const different = names.flatMap((name) => differences(join(EXAMPLES, name), join(installed, name)).map((path) => `${name}/${path}`))
    const isSame = succeeded && different.length === 0 && readdirSync(installed).join() === names.join()
    console.log(`${isSame ? 'ok' : 'DIFFERENT'}: ${CLIENT}, ${node}, ${prefix}: ${names.length} skills ${different.join(', ')}`)
    if (!isSame) console.log(output)
    return isSame
  } finally {
    gateway.close()
  }
}
