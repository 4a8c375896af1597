import type { FastifyRequest } from 'fastify'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'
import { matchesEtag } from './headers.ts'

/** The skills in the revision that a request asks for by `?revision=` or `If-Match` (RFC 9110 §13.1.1), if it does. */
export function viewAtRevision (request: FastifyRequest, skills: View): View {
  const { revision } = request.query as { readonly revision?: string }
  if (revision === undefined && request.headers['if-match'] === undefined) return skills
  request.pinnedView = skills.at(revision ?? 'current')
  return request.pinnedView
}

/** Refuses skills of another revision before any tool runs; undefined for a request that asked for none. */
export function confirmPinnedRevision ({ pinnedView, headers }: FastifyRequest): ConfirmSkill | undefined {
  return pinnedView && (async ({ name, isDisplayName }) => {
    const { 'if-match': ifMatch } = headers
    const { revision } = isDisplayName
      ? await pinnedView.readByDisplayName(name, (skill) => skill.manifest())
      : await pinnedView.read(name, (skill) => skill.manifest())
    if (ifMatch !== undefined && !matchesEtag(ifMatch, `"${revision}"`)) throw new RevisionChangedError(revision)
  })
}
