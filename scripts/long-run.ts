/**
 * Shared by the long-running commands here and in `bench/`: `--help`, progress on a terminal, and cleanup. A command leaves no
 * process and no temporary file behind, also when it is interrupted.
 */
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Interval at which the state of a part is redrawn, in milliseconds. */
const REDRAW_MS = 1_000

/** Limit for the cleanup after a signal, in milliseconds. The process then exits even if a child does not. */
const END_DEADLINE_MS = 10_000

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const CLEAR_LINE = '\r\u001B[K'

/** Exit code for a wrong command line. */
const USAGE_ERROR = 2

export interface LongRun {
  /**
   * Names the part of the work that begins now: one line on a terminal, nothing in a pipe.
   * @param state the progress within the part, redrawn every second
   */
  part (text: string, state?: () => string): void
  /** Writes a result to standard output. */
  print (text: string): void
  /** Registers a cleanup. The last one registered runs first; after the end of the run a cleanup runs at once. */
  teardown (end: () => unknown): void
  /** Creates a temporary folder, which the cleanup removes. The path contains no links. */
  folder (name: string): string
}

/**
 * Parses the arguments of a command. `--help` prints the usage and exits with 0. An unknown flag prints one line and exits with 2.
 * @param usage what `--help` prints
 */
export function readCommandLine<Config extends ParseArgsConfig> (usage: string, config: Config): ReturnType<typeof parseArgs<Config>> {
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
  if (text.trim() === '' || !Number.isFinite(value) || !isAllowed(value)) refuseCommandLine(`${name} cannot be '${text}'`)
  return value
}

export function refuseCommandLine (sentence: string): never {
  console.error(`${sentence}; --help tells more`)
  process.exit(USAGE_ERROR)
}

/**
 * Runs a command until its end or a signal, then its cleanups. The exit code is 0, or 1 if the command returned false or threw.
 * After a signal the exit code is 128 plus the number of the signal.
 */
export async function runLong (command: (run: LongRun) => Promise<boolean>): Promise<void> {
  const ends: Array<() => unknown> = []
  const screen = createScreen()
  let isOver = false

  const run: LongRun = {
    part: screen.part,
    print: (text) => {
      screen.clear()
      console.log(text)
    },
    teardown: (end) => {
      if (isOver) void end()
      else ends.push(end)
    },
    folder: (name) => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)))
      run.teardown(() => { removeTree(folder) })
      return folder
    }
  }

  async function endAll (): Promise<void> {
    isOver = true
    screen.close()
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      try {
        await end()
      } catch (error) {
        console.error(error)
        process.exitCode = 1
      }
    }
  }

  async function interrupt (signal: typeof SIGNALS[number] | 'SIGPIPE'): Promise<void> {
    // A signal can arrive twice: from the terminal, which signals the whole group, and from a parent that forwards it.
    if (isOver) return
    screen.clear()
    console.error(`${signal}: ending what was started, and removing its files`)
    const code = 128 + constants.signals[signal]
    setTimeout(() => { process.exit(code) }, END_DEADLINE_MS)
    await endAll()
    process.exit(code)
  }
  for (const signal of SIGNALS) process.on(signal, () => { void interrupt(signal) })
  // Writing fails once the terminal or the reader of a pipe is gone.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => { void interrupt('SIGPIPE') })

  try {
    if (!await command(run)) process.exitCode = 1
  } catch (error) {
    // After an interruption the command fails because its children are gone.
    if (isOver) return
    screen.clear()
    console.error(error)
    process.exitCode = 1
  }
  if (isOver) return
  await endAll()
  process.exit()
}

/** Progress goes to standard error, so that standard output has the results only. */
function createScreen () {
  const { stderr } = process
  const begun = performance.now()
  let timer: NodeJS.Timeout | undefined

  function clear (): void {
    if (stderr.isTTY) stderr.write(CLEAR_LINE)
  }

  return {
    clear,
    part (text: string, state?: () => string): void {
      if (!stderr.isTTY) return
      clearInterval(timer)
      clear()
      stderr.write(`${clock(performance.now() - begun)}  ${text}\n`)
      if (state === undefined) return
      timer = setInterval(() => { stderr.write(`${CLEAR_LINE}${clock(performance.now() - begun)}  ${state()}`) }, REDRAW_MS)
    },
    close (): void {
      clearInterval(timer)
      clear()
    }
  }
}

/** `61000` → `1:01`. */
function clock (milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Removes also folders without permissions. */
function removeTree (folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    openFolders(folder)
    rmSync(folder, { recursive: true, force: true })
  }
}

function openFolders (folder: string): void {
  chmodSync(folder, 0o700)
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) openFolders(join(folder, entry.name))
}
