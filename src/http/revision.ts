import type { FastifyReply, FastifyRequest, preHandlerHookHandler } from 'fastify'
import type { SkillManager } from '../core/skill-manager.ts'
import { HttpProblem } from './problem.ts'

/** Says which state of a skill an answer belongs to. */
export const REVISION_HEADER = 'skill-revision'

/** Whether the answer may only be of one state: the caller's `?revision=`, or a tag of `If-Match` (RFC 9110 §13.1.1). */
function isPinned ({ query, headers }: FastifyRequest): boolean {
  return headers['if-match'] !== undefined || (query as { readonly revision?: string }).revision !== undefined
}

/**
 * Before the answer to a request that is pinned is made, all files of the skill are looked at, so that the revision which
 * the answer then names is the one that the disk has now. What is wrong with the skill is for the route to say.
 */
export function settleRevision (skills: SkillManager): preHandlerHookHandler {
  return (request, _reply, next) => {
    if (!isPinned(request)) next()
    else skills.manifest((request.params as { readonly name: string }).name).then(() => { next() }, () => { next() })
  }
}

/**
 * Names the revision that an answer belongs to, or refuses it when the request wants another one.
 * @param etag of the answer, which `If-Match` may name as well as the revision
 * @throws {HttpProblem} 412 `revision_changed`, with the revision that there is now
 */
export function stampRevision (request: FastifyRequest, reply: FastifyReply, revision: string | undefined, etag: string): void {
  if (revision !== undefined) reply.header(REVISION_HEADER, revision)
  if (!isPinned(request)) return
  const { revision: wanted } = request.query as { readonly revision?: string }
  const ifMatch = request.headers['if-match']
  if ((wanted === undefined || wanted === revision) && (ifMatch === undefined || isMatch(ifMatch, revision, etag))) return
  throw new HttpProblem('revision_changed', revision === undefined ? undefined : `The skill has changed: its revision is ${revision} now`)
}

/** Strong comparison: neither a weak tag nor a date matches. */
function isMatch (ifMatch: string, revision: string | undefined, etag: string): boolean {
  return ifMatch.split(',').some((part) => {
    const tag = part.trim()
    return tag === '*' || tag === etag || (revision !== undefined && tag === `"${revision}"`)
  })
}
