import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { HttpProblem } from '../http/problem.ts'
import { resultAnswer } from '../openapi/responses.ts'
import { HookAnswerSchema } from '../schemas/health.ts'
import type { SourceHook } from '../sources/sources.ts'
import { readSecretFile } from '../sources/secrets.ts'

interface GitHookOptions {
  /** The sources that a hook may ask for; several may have one secret. */
  readonly hooks: readonly SourceHook[]
}

/** The size of GitHub's largest payloads. They are hashed as they come, and never kept. */
const MAX_BODY_BYTES = 25 * 1_048_576

/**
 * Takes a git host's word that something was pushed. The payload is not used but for its signature, so that a forged
 * one cannot name an address, a ref or a path.
 */
export const gitHook: FastifyPluginAsyncTypebox<GitHookOptions> = async function gitHook (app, { hooks }) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => { done(null, payload) })
  app.post('/hooks/git', {
    bodyLimit: MAX_BODY_BYTES,
    // The sender proves itself by the signature of the body.
    config: { isOpen: true },
    schema: {
      operationId: 'gitHook',
      summary: 'Asks for a check of git sources',
      description: 'For the webhooks of GitHub, GitLab, Gitea, Forgejo and Bitbucket. Only sources with a `webhook` ' +
        'in the configuration file are checked, and only those whose secret the sender has.',
      tags: ['service'],
      response: { 200: resultAnswer(HookAnswerSchema, 'They will be checked within seconds') },
      problems: ['hook_refused', 'body_too_large', 'unsupported_media_type']
    }
  }, async (request) => {
    const secrets = await Promise.all(hooks.map(({ secretFile }) => readSecretFile(secretFile).catch(() => undefined)))
    const digests = await digestsOf(
      request.body as Readable | undefined, Number(request.headers['content-length'] ?? 0), secrets
    )
    const asked = hooks.filter((_, index) => isProof(request.headers, secrets[index], digests[index] ?? ''))
    if (asked.length === 0) throw new HttpProblem('hook_refused')
    for (const { hint } of asked) hint()
    return { sources: asked.length }
  })
}

/**
 * HMAC-SHA-256 of the body as it comes, one for each secret.
 * @param announced its size by the header, 0 without one
 */
async function digestsOf (
  body: Readable | undefined, announced: number, secrets: ReadonlyArray<string | undefined>
): Promise<string[]> {
  const hashes = secrets.map((secret) => createHmac('sha256', secret ?? ''))
  let size = 0
  if (announced > MAX_BODY_BYTES) throw tooLarge()
  for await (const chunk of chunksOf(body)) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw tooLarge()
    for (const hash of hashes) hash.update(chunk)
  }
  return hashes.map((hash) => hash.digest('hex'))
}

function tooLarge (): HttpProblem {
  return new HttpProblem('body_too_large', `A hook has at most ${MAX_BODY_BYTES} bytes`)
}

/** The end of the loop must not destroy the request: its socket, which still carries the answer, would go with it. */
async function * chunksOf (body: Readable | undefined): AsyncGenerator<Buffer> {
  try {
    yield * body?.iterator({ destroyOnReturn: false }) ?? []
  } catch {
    // A body has no errors of its own: its sender has left.
    throw new HttpProblem('bad_request', 'The body of the hook has ended too early')
  }
}

/** GitHub and Bitbucket sign with a prefix, Gitea and Forgejo without; GitLab sends the secret itself. */
function isProof (headers: IncomingHttpHeaders, secret: string | undefined, digest: string): boolean {
  if (secret === undefined) return false
  const pairs = [
    [headers['x-hub-signature-256'] ?? headers['x-hub-signature'], `sha256=${digest}`],
    [headers['x-gitea-signature'] ?? headers['x-forgejo-signature'], digest],
    [headers['x-gitlab-token'], secret]
  ] as const
  return pairs.some(([given, expected]) => typeof given === 'string' && isSame(given, expected))
}

function isSame (given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
