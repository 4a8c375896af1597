import { runCommandLine } from '../../src/cli/run.ts'

export interface CommandLineOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly isTerminal?: boolean
}

/**
 * Runs a command line that starts no service in the process of the test: a process of its own takes half a second of
 * CPU time.
 */
export async function runHere (argv: readonly string[],
  { env = {}, cwd = process.cwd(), isTerminal = false }: CommandLineOptions = {}): Promise<{
    readonly code: number | undefined
    readonly stdout: string
    readonly stderr: string
  }> {
  let stdout = ''
  let stderr = ''
  const code = await runCommandLine(argv, { env, cwd, print: (text) => { stdout += text }, isTerminal },
    (text) => { stderr += text })
  return { code, stdout, stderr }
}

/** Runs `validate` in a folder. */
export async function runValidate (
  cwd: string, ...argv: readonly string[]
): Promise<{ code: number | undefined, out: string, errors: string }> {
  const { code, stdout: out, stderr: errors } = await runHere(['validate', ...argv], { cwd })
  return { code, out, errors }
}
