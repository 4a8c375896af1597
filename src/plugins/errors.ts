import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { SkillError, unlessRefused } from '../core/shared/errors.ts'
import { nearest } from '../core/shared/nearest.ts'
import type { View } from '../core/view.ts'
import type { SkillsOf } from '../http/callers.ts'
import { HttpProblem, renderProblem, toInstance } from '../http/problem.ts'
import { problems } from '../schemas/problem.ts'

/** Matches a path below a skill that is no route: the caller probably means a file of the skill. */
const BELOW_SKILL = /(\/skills\/[^/]+)\/(?!files\/|.*\.\.)(.+)$/

/** Longest name, and most candidates, for which a suggestion is worth its time. */
const MAX_CHARACTERS = 100
const MAX_CANDIDATES = 2_000

interface ErrorsOptions {
  readonly basePath: string
  /** Converts an error into the one that the caller of a request sees. */
  readonly translate: (error: unknown, request: FastifyRequest) => unknown
  readonly skillsOf: SkillsOf
}

/** Returns 404, or 405 with `Allow` if the path exists for other methods: Fastify's answer is the same for both. */
function noRoute (app: FastifyInstance, request: FastifyRequest, basePath: string): HttpProblem {
  // `cors` adds OPTIONS for every path, whether it exists or not.
  const methodsOf = (url: string) => (app.supportedMethods as HTTPMethods[])
    .filter((method) => method !== 'OPTIONS' && app.findRoute({ method, url }) !== null)
  const allowed = methodsOf(request.url)
  // A route for this method has called `callNotFound()`.
  if (allowed.length === 0 || allowed.some((method) => method === request.method)) {
    const path = toInstance(request.url)
    const file = path.replace(BELOW_SKILL, '$1/files/$2')
    const hint = file === path || methodsOf(file).length === 0 ? '' : `; did you mean ${file}?`
    const text = problems.route_not_found.text.replace('GET /', `GET ${basePath || '/'}`)
    return new HttpProblem('route_not_found', text + hint)
  }
  const allow = allowed.join(', ')
  const text = `Method ${request.method} is not allowed here; allowed: ${allow}`
  return new HttpProblem('method_not_allowed', text, { allow })
}

/** Answers every error in Fastify with a problem; `http/connections.ts` does so for other errors. */
export const errors = fp<ErrorsOptions>(function errors (app, { basePath, translate, skillsOf }, done) {
  app.setErrorHandler(async (error, request, reply) => {
    const translated = translate(error, request)
    const suggestion = await suggestName(translated, request, () => skillsOf(request))
    return reply.send(renderProblem(translated, request, reply, suggestion))
  })
  app.setNotFoundHandler((request) => { throw noRoute(app, request, basePath) })
  // Before the body is read, which is not needed. After `onRequest`, so that `cors` lets pages read these answers.
  app.addHook('preParsing', (request, _reply, payload, next) => {
    next(request.is404 ? noRoute(app, request, basePath) : null, payload)
  })
  done()
}, { name: 'errors' })

/** Returns the name or path in `skills` that is most similar to one that was not found. */
async function suggestName (
  error: unknown, { params }: FastifyRequest, skills: () => View
): Promise<string | undefined> {
  const { name, '*': path = '' } = (params ?? {}) as { readonly name?: string, readonly '*'?: string }
  if (!(error instanceof SkillError) || name === undefined) return undefined
  if (error.code === 'skill_not_found') return nearestOf(name, skills().indexedNames())
  if (error.code !== 'file_not_found') return undefined
  const snapshot = await unlessRefused(() => skills().read(name, (state) => state.listedSnapshot()))
  return snapshot && nearestOf(path, snapshot.manifest.files.map(({ path }) => path))
}

function nearestOf (word: string, words: readonly string[]): string | undefined {
  if (word.length > MAX_CHARACTERS) return undefined
  const near = words.filter(({ length }) => Math.abs(length - word.length) <= 2)
  return near.length > MAX_CANDIDATES ? undefined : nearest(word, near)
}
