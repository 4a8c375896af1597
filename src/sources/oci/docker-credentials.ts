import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { own } from '../../core/shared/json.ts'
import { homeOf } from '../../config/files/home.ts'
import type { Environment } from '../../config/setting.ts'
import { basic } from '../http/http-client.ts'
import { SourceError } from '../source-error.ts'

/** A name becomes the end of the name of a program. */
const HELPER_NAME = /^[\w-]+$/
const HELPER_MS = 15_000
const MAX_HELPER_BYTES = 65_536

/** What a helper prints for a registry that it does not know; its exit code is 1. */
const NOT_FOUND = /credentials not found/

/** In the place of a user: the secret is a refresh token, which only `docker` itself exchanges. */
const TOKEN_USER = '<token>'

const run = promisify(execFile)

/**
 * The header with the credentials that `docker login` left for a registry: those in `config.json`, else those of a
 * helper that the file names.
 * @returns no header where there are none
 * @throws SourceError for a file that is not JSON, and a helper that fails
 */
export async function dockerCredentials (
  registry: string, env: Environment, signal: AbortSignal
): Promise<Readonly<Record<string, string>>> {
  const config = await readConfig(env['DOCKER_CONFIG'] || join(homeOf(env) ?? '/', '.docker'))
  const server = registry === 'docker.io' ? 'https://index.docker.io/v1/' : registry
  const auth = own(own(own(config, 'auths'), server), 'auth')
  if (typeof auth === 'string' && auth !== '') return { authorization: `Basic ${auth}` }
  const helper = own(own(config, 'credHelpers'), server) ?? own(config, 'credsStore')
  return typeof helper === 'string' && helper !== '' ? await askHelper(helper, server, env, signal) : {}
}

async function readConfig (folder: string): Promise<unknown> {
  let text: string
  try {
    text = await readFile(join(folder, 'config.json'), 'utf8')
  } catch {
    return undefined
  }
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new SourceError('secret_missing', 'config.json of Docker is not JSON', { cause })
  }
}

/** Asks as `docker pull` does: the registry on the standard input, JSON on the output. */
async function askHelper (
  name: string, server: string, env: Environment, signal: AbortSignal
): Promise<Readonly<Record<string, string>>> {
  if (!HELPER_NAME.test(name)) {
    throw new SourceError('secret_missing', 'config.json of Docker has a helper whose name is not a plain word')
  }
  const program = `docker-credential-${name}`
  const either = AbortSignal.any([signal, AbortSignal.timeout(HELPER_MS)])
  const asking = run(program, ['get'], { env: { ...env }, signal: either, maxBuffer: MAX_HELPER_BYTES })
  // A helper may end without reading.
  asking.child.stdin?.on('error', () => {}).end(server)
  let text: string
  try {
    text = (await asking).stdout
  } catch (error) {
    signal.throwIfAborted()
    if (own(error, 'code') === 'ENOENT') {
      throw new SourceError('secret_missing', `${program}, which config.json of Docker names, is not installed`)
    }
    if (NOT_FOUND.test(String(own(error, 'stdout')))) return {}
    // Its output may hold a secret: only the exit code is reported.
    const details = `exit code ${String(own(error, 'code'))}`
    throw new SourceError('secret_missing', `${program} gives no credentials`, { details })
  }
  return credentialsIn(text, program)
}

function credentialsIn (text: string, program: string): Readonly<Record<string, string>> {
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    answer = undefined
  }
  const username = own(answer, 'Username')
  const secret = own(answer, 'Secret')
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw new SourceError('secret_missing', `${program} gives something else than a user and a secret`)
  }
  if (username === TOKEN_USER) {
    const sentence = `${program} gives a refresh token: set a user and a password or access token with auth`
    throw new SourceError('secret_missing', sentence)
  }
  return basic(username, secret)
}
