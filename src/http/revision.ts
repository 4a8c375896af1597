import type { FastifyRequest } from 'fastify'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'
import { matchesEtag } from './etag.ts'

/** What requests read that ask for a revision. */
const asked = new WeakMap<FastifyRequest, View>()

/** The skills in the revision that a request asks for by `?revision=` or `If-Match` (RFC 9110 §13.1.1), if it does. */
export function inAskedRevision (request: FastifyRequest, skills: View): View {
  const { revision } = request.query as { readonly revision?: string }
  if (revision === undefined && request.headers['if-match'] === undefined) return skills
  const source = skills.at(revision ?? 'current')
  asked.set(request, source)
  return source
}

/** The revision of what was read for a request that asked for one: `conditional` names it in the answer. */
export function askedRevision (request: FastifyRequest): string | undefined {
  return asked.get(request)?.onlyRevision
}

/** Refuses skills of another revision before any tool runs; undefined for a request that asked for none. */
export function confirmAskedRevision (request: FastifyRequest): ConfirmSkill | undefined {
  const source = asked.get(request)
  return source && (async ({ name, isDisplayName }) => {
    const { 'if-match': ifMatch } = request.headers
    const { revision } = isDisplayName
      ? await source.readByDisplayName(name, (skill) => skill.manifest())
      : await source.read(name, (skill) => skill.manifest())
    if (ifMatch !== undefined && !matchesEtag(ifMatch, `"${revision}"`)) throw new RevisionChangedError(revision)
  })
}
