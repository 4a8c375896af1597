import type { Test } from 'tap'
import type { Access } from '../../src/access/access.ts'
import { createSecret, digestOf, type SecretKind } from '../../src/access/secret.ts'
import { buildService, type Files, type ServiceOptions } from './build.ts'
import { responseCheckOf } from './openapi.ts'
import { saveAtomically, until } from './skills.ts'

export interface Secret {
  /** The token or secret path that its owner sends. */
  readonly text: string
  /** Its entry in the access file, without braces. */
  readonly entry: string
}

interface GuardedOptions extends Omit<ServiceOptions, 'access' | 'roots'> {
  /** Files by name of the root, in the order of the roots. */
  readonly roots: Readonly<Record<string, Files>>
  /** The text of the access file. */
  readonly access: string
  readonly plugins?: ReturnType<NonNullable<ServiceOptions['plug']>>
}

/** Other APIs, pages, links, and a route of the test. */
const NOT_IN_DOCUMENT = /^\/(?:docs|mcp|metrics|ui|t|meter|\.well-known\/o[\w-]+)(?:[/?]|$)/

/** Makes a token or link, with its line for the access file. */
export function newSecret (name: string, fields = '', kind: SecretKind = 'token'): Secret {
  const text = createSecret(kind)
  return { text, entry: `{ name: ${name}, sha256: ${digestOf(text)}${fields === '' ? '' : `, ${fields}`} }` }
}

export function bearer (token: string): { readonly authorization: string } {
  return { authorization: `Bearer ${token}` }
}

/** Starts a service with an access file. */
export async function buildGuarded (t: Test,
  { roots, access: text, plugins = [], basePath = '', ...options }: GuardedOptions) {
  const service = await buildService(t, {
    files: null,
    options: {
      siblings: { ...roots, 'access.yaml': text },
      roots: Object.keys(roots),
      access: 'access.yaml',
      plug: () => plugins,
      basePath,
      ...options
    }
  })
  const { url, folder, app, logText, skills } = service
  const { file, refusals } = service.access as Access

  async function checkAnswer (path: string, method: string, response: Response): Promise<void> {
    const { status, headers } = response
    const target = path.slice(basePath.length)
    // The answer is a stream, which does not end.
    if (!path.startsWith(basePath) || NOT_IN_DOCUMENT.test(target) ||
      headers.get('content-type') === 'text/event-stream') {
      return
    }
    const body = Buffer.from(await response.clone().arrayBuffer())
    responseCheckOf(JSON.stringify(app.swagger()))({
      method, target, status, headers: Object.fromEntries(headers), body
    })
  }

  async function write (content: string, line: string): Promise<void> {
    const start = logText().length
    saveAtomically(`${folder}/access.yaml`, content)
    await file.reload()
    await until(() => logText().slice(start).includes(line))
  }

  return {
    url,
    folder,
    app,
    skills,
    accessFile: file,
    refusals,
    logText,
    /** Writes the access file, and resolves when it is in force. */
    setAccess: (content: string) => write(content, 'has changed and is in force'),
    /** Writes an invalid access file, and resolves when the service has reported it. */
    breakAccess: (content: string) => write(content, 'the last good one stays in force'),
    /** Sends a GET with a bearer token, and validates the answer against the OpenAPI document. */
    async get (path: string, token?: string, init: RequestInit = {}): Promise<Response> {
      const headers = { ...init.headers as Record<string, string>, ...token !== undefined && bearer(token) }
      const response = await fetch(`${url}${path}`, { ...init, headers })
      await checkAnswer(path, init.method ?? 'GET', response)
      return response
    }
  }
}
