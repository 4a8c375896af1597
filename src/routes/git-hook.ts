import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { HttpProblem } from '../http/problem.ts'
import { resultAnswer } from '../openapi/responses.ts'
import { HookAnswerSchema } from '../schemas/health.ts'
import type { Sources } from '../sources/sources.ts'
import { readSecretFile } from '../sources/secrets.ts'

interface GitHookOptions {
  /** Returns the sources that webhooks may check; several may share one secret. */
  readonly hooks: () => Sources['hooks']
}

/** Limit for payloads, which usually have a few KiB: they are in memory while they are hashed. */
const MAX_BODY_BYTES = 10 * 1_048_576

/**
 * Receives webhooks of git hosts after a push. Only the signature of the payload is used, so that a forged one cannot
 * inject an address, a ref or a path.
 */
export const gitHook: FastifyPluginAsyncTypebox<GitHookOptions> = async function gitHook (app, options) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => { done(null, body) })
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
      response: { 200: resultAnswer(HookAnswerSchema, 'They will be checked within seconds') }
    }
  }, async ({ body, headers }) => {
    const hooks = options.hooks()
    const secrets = await Promise.all(hooks.map(({ secretFile }) => readSecretFile(secretFile).catch(() => undefined)))
    const asked = hooks.filter((_, index) => isProof(headers, secrets[index], body as Buffer | undefined))
    if (asked.length === 0) throw new HttpProblem('hook_refused')
    for (const { checkSoon } of asked) checkSoon()
    return { sources: asked.length }
  })
}

/** GitHub and Bitbucket sign with a prefix, Gitea and Forgejo without; GitLab sends the secret itself. */
function isProof (headers: IncomingHttpHeaders, secret: string | undefined, body: Buffer = Buffer.of()): boolean {
  if (secret === undefined) return false
  const digest = createHmac('sha256', secret).update(body).digest('hex')
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
