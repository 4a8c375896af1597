import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../access/access.ts'
import { isDamaged } from '../access/secret.ts'
import { SESSION_COOKIE } from '../access/session.ts'
import { own } from '../core/shared/json.ts'
import { READ_SCOPE } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import { html } from './markup/html.ts'
import type { Pages } from './pages.ts'
import type { Page } from './pages/layout.ts'

const MAX_FORM_BYTES = 8_192

interface SignInOptions {
  readonly pages: Pages
  readonly access: Pick<Access, 'findToken'>
  readonly prefix: string
  readonly publicUrl?: string | undefined
}

/** Registers the form by which people sign in to the pages with their token, which a cookie keeps, and out again. */
export function signInRoutes (app: FastifyInstance, { pages, access, prefix, publicUrl }: SignInOptions): void {
  const config = { isOpen: true, reads: 'nothing' } as const
  const options = { schema: { hide: true }, config, onRequest: refuseOtherSites }
  const path = `${prefix}/`

  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, text, done) => { done(null, Object.fromEntries(new URLSearchParams(String(text)))) })

  app.get('/ui/sign-in', options, async (request, reply) => showForm(request, reply))

  app.post('/ui/sign-in', options, async (request, reply) => {
    const token = String(own(request.body, 'token') ?? '').trim()
    const found = access.findToken(token)
    if (found === 'token_expired') return await showForm(request, reply, 'This token has expired. Ask for a new one')
    if (typeof found === 'string') {
      const problem = isDamaged(token)
        ? 'This token is damaged: a character is wrong or missing. Copy it once more'
        : 'This token is unknown. Ask for a new one'
      return await showForm(request, reply, problem)
    }
    if (!found.scopes.has(READ_SCOPE)) {
      return await showForm(request, reply, `This token may not read skills: it lacks the scope ${READ_SCOPE}`)
    }
    // Behind a proxy with TLS, the service gets plain HTTP; `Origin` has the browser's scheme.
    const secure = [request.headers.origin, publicUrl].some((address) => address?.startsWith('https:'))
    const expires = found.expiresAt === undefined ? {} : { expires: new Date(found.expiresAt) }
    setCookie(reply, token, { httpOnly: true, sameSite: 'strict', secure, ...expires })
    return reply.redirect('../', 303)
  })

  app.post('/ui/sign-out', options, async (_request, reply) => {
    setCookie(reply, '', { maxAge: 0 })
    return reply.redirect('sign-in', 303)
  })

  function setCookie (reply: FastifyReply, value: string, attributes: Parameters<typeof app.serializeCookie>[2]): void {
    reply.header('set-cookie', app.serializeCookie(SESSION_COOKIE, value, { path, ...attributes }))
    reply.header('cache-control', 'no-store')
  }

  async function showForm (request: FastifyRequest, reply: FastifyReply, problem?: string): Promise<FastifyReply> {
    reply.code(problem === undefined ? 200 : 403).header('cache-control', 'no-store')
    return await pages.answer(request, reply, async () => signInPage(problem))
  }
}

/** Refuses a form that another site sent, which could sign a person in as somebody else. */
async function refuseOtherSites ({ headers: { origin }, host, method }: FastifyRequest): Promise<void> {
  if (method !== 'POST' || origin === undefined || origin.replace(/^https?:\/\//, '') === host) return
  throw new HttpProblem('origin_not_allowed', 'The form was sent by another site')
}

/** @param problem reason why the last token was refused */
function signInPage (problem?: string): Page {
  return {
    title: 'Sign in – Skills',
    main: html`<h1>Sign in</h1>
<p class="lead">Sign in with the token that you use for the API. This browser keeps it in a cookie that only these pages
read.</p>
${problem !== undefined && html`<p class="refused" role="alert">${problem}.</p>`}
<form class="sign-in" method="post" action="sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>`
  }
}
