/**
 * What the commands that take their time share, here and in `bench/`: `--help`, progress on a terminal, and no process
 * and no temporary file left behind, also when they are interrupted.
 */
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** How often the state of a part is drawn again, in milliseconds. */
const REDRAW_MS = 1_000

/** How long what is ended may take, in milliseconds, before the process goes without it. */
const END_DEADLINE_MS = 10_000

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const CLEAR_LINE = '\r\u001B[K'

/** Exit code for a command line that makes no sense. */
const USAGE_ERROR = 2

export interface LongRun {
  /**
   * Says on a terminal what happens now; in a pipe nothing.
   * @param state how far it is, drawn again every second
   */
  part (text: string, state?: () => string): void
  /** Writes a result to standard output. */
  print (text: string): void
  /** Has something ended when the run is over, the last thing first; at once if it is over already. */
  teardown (end: () => unknown): void
  /** A temporary folder, its path without links, that is removed in the end whatever is in it. */
  folder (name: string): string
}

/**
 * The arguments of a command. `--help` prints the usage and exits with 0, a flag that does not exist exits with 2 and one line.
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

/** A number from the command line. */
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
 * Runs a command to its end or to a signal, and ends what it began. The exit code is 0, 1 when it returned false or threw, and
 * 128 and the number of the signal when it was interrupted.
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
    // A terminal sends it to the whole group, and whoever started this process may pass it on: it comes more than once.
    if (isOver) return
    screen.clear()
    console.error(`${signal}: ending what was started`)
    const code = 128 + constants.signals[signal]
    setTimeout(() => { process.exit(code) }, END_DEADLINE_MS)
    await endAll()
    process.exit(code)
  }
  for (const signal of SIGNALS) process.on(signal, () => { void interrupt(signal) })
  // The terminal is closed, or whoever read the results has gone.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => { void interrupt('SIGPIPE') })

  try {
    if (!await command(run)) process.exitCode = 1
  } catch (error) {
    // After an interruption it is what was ended that fails.
    if (isOver) return
    screen.clear()
    console.error(error)
    process.exitCode = 1
  }
  if (isOver) return
  await endAll()
  process.exit()
}

/** Progress on standard error, so that the results can go elsewhere. */
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

/** Also folders that their owner has closed. */
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
