/**
 * Shared by the long-running commands here and in `bench/`: `--help`, progress on a terminal, and cleanup. A command
 * leaves no process and no temporary file behind, also when it is interrupted.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Exit code for a wrong command line. */
const USAGE_ERROR = 2
/** Exit code of a check that cannot run here; `.ci/run` counts it neither as passed nor as failed. */
const SKIPPED = 75

export interface LongRun {
  /** Prints the name of the next part of the work: one line on a terminal, nothing in a pipe. */
  part (text: string): void
  /** Writes a result to standard output. */
  print (text: string): void
  /** Registers a cleanup. The last one registered runs first; after the end of the run a cleanup runs at once. */
  teardown (end: () => unknown): void
  /** Creates a temporary folder, which the cleanup removes. The path contains no links. */
  folder (name: string): string
}

/**
 * Parses the arguments of a command. `--help` prints the usage and exits with 0. An unknown flag prints one line and
 * exits with 2.
 * @param usage what `--help` prints
 */
export function readCommandLine<Config extends ParseArgsConfig> (usage: string,
  config: Config): ReturnType<typeof parseArgs<Config>> {
  if (process.argv.slice(2).some((arg) => arg === '--help' || arg === '-h')) {
    console.log(usage.trim())
    process.exit(0)
  }
  try {
    return parseArgs(config)
  } catch (error) {
    refuseCommandLine(error instanceof Error ? error.message : String(error))
  }
}

/** Parses a number from the command line. If the number is not allowed, the process exits with 2. */
export function readNumber (text: string, name: string, isAllowed: (value: number) => boolean): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || !isAllowed(value)) {
    refuseCommandLine(`${name} cannot be '${text}'`)
  }
  return value
}

export function refuseCommandLine (sentence: string): never {
  console.error(`${sentence}; --help tells more`)
  process.exit(USAGE_ERROR)
}

/**
 * Runs a command until its end or a signal, then its cleanups. The exit code is 0, 75 if the command was skipped, or 1
 * if it returned false or threw. After a signal the exit code is 128 plus the number of the signal.
 */
export async function runLong (command: (run: LongRun) => Promise<boolean | 'skipped'>): Promise<void> {
  const ends: Array<() => unknown> = []
  let ending: Promise<never> | undefined

  async function endAll (code: number): Promise<never> {
    for (const end of ends.splice(0).reverse()) await end()
    process.exit(code)
  }
  const finish = (code: number) => (ending ??= endAll(code))

  const run: LongRun = {
    part: (text) => { if (process.stderr.isTTY) console.error(`${Math.round(performance.now() / 1_000)} s  ${text}`) },
    print: (text) => { console.log(text) },
    teardown: (end) => {
      if (ending === undefined) ends.push(end)
      else void end()
    },
    folder: (name) => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)))
      run.teardown(() => {
        // Some folders have no permissions.
        execFileSync('chmod', ['-R', 'u+rwX', folder])
        rmSync(folder, { recursive: true, force: true })
      })
      return folder
    }
  }
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (ending === undefined) console.error(`${signal}: ending what was started, and removing its files`)
      void finish(128 + constants.signals[signal])
    })
  }
  try {
    const outcome = await command(run)
    await finish(outcome === 'skipped' ? SKIPPED : outcome ? 0 : 1)
  } catch (error) {
    // After a signal the command fails because its children are gone.
    if (ending === undefined) console.error(error)
    await finish(1)
  }
}
