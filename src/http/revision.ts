import type { FastifyRequest } from 'fastify'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'
import { matchesEtag } from './headers.ts'

/** Pins the skills to the revision that a request asks for by `?revision=` or `If-Match` (RFC 9110 §13.1.1). */
export function viewAtRevision (request: FastifyRequest, skills: View): View {
  const { revision } = request.query as { readonly revision?: string }
  if (revision === undefined && request.headers['if-match'] === undefined) return skills
  request.pinnedView = skills.at(revision ?? 'current')
  return request.pinnedView
}

/** Returns a check that refuses a skill of another revision before a tool runs; undefined if the request pins none. */
export function confirmPinnedRevision ({ pinnedView, headers }: FastifyRequest): ConfirmSkill | undefined {
  return pinnedView && (async ({ name, isDisplayName }) => {
    const { 'if-match': ifMatch } = headers
    const { revision } = isDisplayName
      ? await pinnedView.readByDisplayName(name, (skill) => skill.manifest())
      : await pinnedView.read(name, (skill) => skill.manifest())
    if (ifMatch !== undefined && !matchesEtag(ifMatch, `"${revision}"`)) throw new RevisionChangedError(revision)
  })
}
