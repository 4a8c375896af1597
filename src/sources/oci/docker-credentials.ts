import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { own } from '../../core/shared/json.ts'
import { homeOf } from '../../operator/home.ts'
import type { Environment } from '../../operator/setting.ts'
import { basic, type RequestHeaders } from '../secrets.ts'
import { SourceError } from '../source-error.ts'

/** Name of a credential helper, which becomes the end of a program's name. */
const HELPER_NAME = /^[\w-]+$/

/** Output of a helper for an unknown registry; its exit code is 1. */
const NOT_FOUND = /credentials not found/

const run = promisify(execFile)

/**
 * Returns a header with the credentials that `docker login` left for a registry: those in `config.json`, else those of
 * a helper that the file names; no header where there are none.
 * @throws SourceError for a file that is not JSON, and a helper that fails
 */
export async function dockerCredentials (
  registry: string, env: Environment, signal: AbortSignal
): Promise<RequestHeaders> {
  const folder = env['DOCKER_CONFIG'] || join(homeOf(env) ?? '/', '.docker')
  const text = await readFile(join(folder, 'config.json'), 'utf8').catch(() => '{}')
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch {
    throw missing('config.json of Docker is not JSON')
  }
  const server = registry === 'docker.io' ? 'https://index.docker.io/v1/' : registry
  const auth = own(own(own(config, 'auths'), server), 'auth')
  if (typeof auth === 'string' && auth !== '') return { authorization: `Basic ${auth}` }
  const helper = own(own(config, 'credHelpers'), server) ?? own(config, 'credsStore')
  return typeof helper === 'string' && helper !== '' ? await askHelper(helper, server, env, signal) : {}
}

/** Asks a helper as `docker pull` does: the registry on its standard input, JSON on its output. */
async function askHelper (
  name: string, server: string, env: Environment, signal: AbortSignal
): Promise<RequestHeaders> {
  if (!HELPER_NAME.test(name)) throw missing('config.json of Docker has a helper whose name is not a plain word')
  const program = `docker-credential-${name}`
  const asking = run(program, ['get'], { env: { ...env }, signal })
  // A helper may exit without reading its input.
  asking.child.stdin?.on('error', () => {}).end(server)
  let answer: unknown
  try {
    answer = JSON.parse((await asking).stdout)
  } catch (error) {
    signal.throwIfAborted()
    if (NOT_FOUND.test(String(own(error, 'stdout')))) return {}
    // Errors do not quote the output, which may contain a secret.
    throw missing(`${program}, which config.json of Docker names, gives no credentials`)
  }
  const [username, secret] = [own(answer, 'Username'), own(answer, 'Secret')]
  // For the user `<token>` the secret is a refresh token, which only `docker` itself can exchange.
  if (typeof username !== 'string' || typeof secret !== 'string' || username === '<token>') {
    throw missing(`${program} gives no user and secret: set a user and a password or access token with auth`)
  }
  return basic(username, secret)
}

function missing (sentence: string): SourceError {
  return new SourceError('secret_missing', sentence)
}
