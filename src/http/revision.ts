import type { FastifyRequest } from 'fastify'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'
import { matchesEtag } from './etag.ts'

/** The skills in the revision that a request asks for by `?revision=` or `If-Match` (RFC 9110 §13.1.1), if it does. */
export function inAskedRevision (request: FastifyRequest, skills: View): View {
  const { revision } = request.query as { readonly revision?: string }
  if (revision === undefined && request.headers['if-match'] === undefined) return skills
  request.asked = skills.at(revision ?? 'current')
  return request.asked
}

/** Refuses skills of another revision before any tool runs; undefined for a request that asked for none. */
export function confirmAskedRevision ({ asked, headers }: FastifyRequest): ConfirmSkill | undefined {
  return asked && (async ({ name, isDisplayName }) => {
    const { 'if-match': ifMatch } = headers
    const { revision } = isDisplayName
      ? await asked.readByDisplayName(name, (skill) => skill.manifest())
      : await asked.read(name, (skill) => skill.manifest())
    if (ifMatch !== undefined && !matchesEtag(ifMatch, `"${revision}"`)) throw new RevisionChangedError(revision)
  })
}
