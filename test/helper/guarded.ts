import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { load } from 'js-yaml'
import { pino } from 'pino'
import type { Test } from 'tap'
import { createSecret, digestOf, type SecretKind } from '../../src/access/secret.ts'
import { type Access, openAccess } from '../../src/access/access.ts'
import { type AppOptions, buildApp } from '../../src/app.ts'
import { readPackageVersion } from '../../src/cli/package-files.ts'
import { createSkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import type { Files } from './build.ts'
import { responseCheckOf } from './openapi.ts'
import { saveAtomically, until } from './skills.ts'

export interface Secret {
  /** What its holder sends. */
  readonly text: string
  /** Its entry in the access file, without braces. */
  readonly entry: string
}

export interface GuardedService {
  readonly url: string
  readonly folder: string
  readonly app: FastifyInstance
  readonly refusals: Access['refusals']
  logText (): string
  /** Writes the access file anew, and resolves when it is in force. */
  setAccess (text: string): Promise<void>
  /** Writes an access file that cannot be used, and resolves when that has been found. */
  breakAccess (text: string): Promise<void>
  /** GET with a bearer token; the answer is held against the OpenAPI document. */
  get (path: string, token?: string, init?: RequestInit): Promise<Response>
}

export interface GuardedOptions extends Pick<SkillManagerOptions, 'watcher'> {
  /** Files by name of the root, in the order of the roots. */
  readonly roots: Readonly<Record<string, Files>>
  /** The access file. */
  readonly access: string
  readonly basePath?: string
  readonly publicUrl?: string
  readonly host?: string
  /** Default: any free one. */
  readonly port?: number
  readonly plugins?: readonly FastifyPluginAsync[]
  readonly sources?: AppOptions['sources']
}

const DOCUMENT = JSON.stringify(load(readFileSync(new URL('../../openapi/openapi.yaml', import.meta.url), 'utf8')))
/** Other protocols, pages, links, and a route of a test. */
const NOT_IN_DOCUMENT = /^\/(?:docs|mcp|metrics|ui|t|meter|\.well-known\/o[\w-]+)(?:[/?]|$)/

/** A new token or link, and its line. */
export function newSecret (name: string, fields = '', kind: SecretKind = 'token'): Secret {
  const text = createSecret(kind)
  return { text, entry: `{ name: ${name}, sha256: ${digestOf(text)}${fields === '' ? '' : `, ${fields}`} }` }
}

export function bearer (token: string): { readonly authorization: string } {
  return { authorization: `Bearer ${token}` }
}

/** Starts a service with callers on a free port; the test's teardown ends it. */
export async function buildGuarded (t: Test, { roots, access: text, basePath = '', publicUrl, watcher = false, host = '127.0.0.1', port = 0, plugins = [], sources }: GuardedOptions): Promise<GuardedService> {
  const folder = t.testdir({ ...roots, 'access.yaml': text })
  const file = join(folder, 'access.yaml')
  let log = ''
  const logger = pino({ level: 'trace' }, new Writable({
    write (chunk: Buffer, _encoding, done) {
      log += chunk.toString()
      done()
    }
  }))
  const skills = createSkillManager({ projectRoots: Object.keys(roots).map((root) => join(folder, root)), watcher, log: logger })
  const access = await openAccess({ file, basePath, publicUrl, skills, log: logger })
  const app = await buildApp({ skills: access.nothing, access, registry: createToolRegistry(createTools()), logger, version: readPackageVersion(), host, basePath, plugins, ...sources && { sources } })
  t.teardown(async () => {
    app.server.closeAllConnections()
    await app.close()
    await skills.close()
  })
  await skills.start()
  await skills.available()
  const url = await app.listen({ host, port })
  const check = responseCheckOf(DOCUMENT)

  async function checkAnswer (path: string, method: string, response: Response): Promise<void> {
    const { status, headers } = response
    const target = path.slice(basePath.length)
    // A stream does not end.
    if (!path.startsWith(basePath) || NOT_IN_DOCUMENT.test(target) || headers.get('content-type') === 'text/event-stream') return
    check({ method, target, status, headers: Object.fromEntries(headers), body: Buffer.from(await response.clone().arrayBuffer()) })
  }

  async function write (content: string, line: string): Promise<void> {
    const start = log.length
    saveAtomically(file, content)
    await access.file.reload()
    await until(() => log.slice(start).includes(line))
  }

  return {
    url,
    folder,
    app,
    refusals: access.refusals,
    logText: () => log,
    setAccess: (content) => write(content, 'has changed and is in force'),
    breakAccess: (content) => write(content, 'the last good one stays in force'),
    async get (path, token, init = {}) {
      const response = await fetch(`${url}${path}`, { ...init, headers: { ...init.headers as Record<string, string>, ...token !== undefined && bearer(token) } })
      await checkAnswer(path, init.method ?? 'GET', response)
      return response
    }
  }
}
