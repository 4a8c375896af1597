import { errorCode } from '../../core/shared/system-errors.ts'
import { loadConfig, settingFlags, settingsWithoutValue } from '../../config/load.ts'
import type { Config } from '../../config/settings.ts'
import { authorityOf, connectableHost } from '../../http/request/hosts.ts'
import { quote } from '../../config/setting.ts'
import { parseArguments } from '../arguments.ts'
import { type Arguments, type Command, CommandError } from '../command.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** For a container's health check: with the settings of the service, it finds the service. */
export const command: Command = {
  summary: 'asks a running service whether it is ready',
  flags: [...settingFlags(), 'pid'],
  optionalFlags: settingsWithoutValue(),
  details: () => `Asks GET /readyz at the host and port that the flags and the environment of serve name. With --pid PID the flags are those
that the process with this number was started with, on Linux: in a container it is 1.
Exits with 0 when the service is ready; with 1 and a line that says why when it is not, or does not answer within ${TIMEOUT_MS / 1000} s.
`,
  async run ({ flags }, { env, cwd }) {
    const pid = flags.get('pid')?.at(-1)
    const started = pid === undefined ? undefined : await flagsOfProcess(pid)
    const { status, reason } = await askReadiness(loadConfig({ positionals: [], flags: started ?? flags, env, cwd }))
    if (status !== 200) throw new CommandError(`GET /readyz answered ${status}${reason === undefined ? '' : `: ${reason}`}`)
    return 0
  }
}

/** How the programs of the package are called in a command line. */
const PROGRAM = /(?:^|\/)(?:main\.js|skillserve(?:\.cjs)?)$/

const PID = /^[1-9]\d{0,8}$/

/** Longest answer that is read for its reason, in characters. */
const MAX_ANSWER_CHARACTERS = 65_536

/** One that may not be asked is there. */
function isRunning (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) !== 'ESRCH'
  }
}

/** The flags that a service was started with; undefined for a process that is none, such as the init of a container. */
async function flagsOfProcess (pid: string): Promise<Arguments['flags'] | undefined> {
  if (!PID.test(pid)) throw new CommandError(`--pid must be the number of a process, not ${quote(pid)}`)
  if (!isRunning(Number(pid))) throw new CommandError(`--pid: there is no process ${pid}`)
  const { readFile } = await import('node:fs/promises')
  const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0').slice(0, -1)
  const program = argv.findIndex((argument) => PROGRAM.test(argument))
  return program === -1 ? undefined : parseArguments(argv.slice(program + 1), settingFlags(), [], settingsWithoutValue()).flags
}

/** @throws CommandError when there is no answer */
async function askReadiness ({ host, port, basePath, allowedHosts }: Config): Promise<{ readonly status: number | undefined, readonly reason: string | undefined }> {
  if (port === 0) throw new CommandError('a service with port 0 takes any free port, which is not known here: PORT or --port names the port that its log has')
  const { get } = await import('node:http')
  const hostname = connectableHost(host)
  // The zone of an address is this machine's own, and no part of the header (RFC 6874 §4).
  const name = allowedHosts?.[0] ?? hostname.replace(/%.*$/, '')
  return await new Promise((resolve, reject) => {
    get({
      host: hostname,
      port,
      path: `${basePath}/readyz`,
      headers: { host: authorityOf(name) },
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS)
    }, (response) => {
      let text = ''
      const answer = (): void => { resolve({ status: response.statusCode, reason: reasonIn(text) }) }
      response.setEncoding('utf8')
        .on('data', (part: string) => {
          text += part
          if (text.length > MAX_ANSWER_CHARACTERS) response.destroy()
        })
        // One that is cut off has its status.
        .on('error', () => {})
        .on('close', answer)
    }).on('error', (error) => { reject(new CommandError(`GET /readyz has no answer: ${error.message}; --host and --port, or HOST and PORT, are those of the service`)) })
  })
}

/** What a problem says in words, on one line. Something else than the service may answer at this port. */
function reasonIn (text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown }
    return typeof detail === 'string' ? detail.replace(/\s+|\p{Cc}+/gu, ' ').trim() : undefined
  } catch {
    return undefined
  }
}
