import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SkillState } from '../core/revisions/state.ts'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { SourceAtRevision, SkillSource } from '../core/service.ts'
import { matchesStrongly } from './etag.ts'
import { REVISION_HEADER } from './headers.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'

/** The revision in which a request wants its skills, and the conditions on its answer. */
export interface RevisionCondition {
  /** In the wanted revision, when one is wanted. */
  readonly skills: SkillSource
  /**
   * Names the revision in the answer, and refuses an answer that `If-Match` does not want. Called when the answer is known.
   * @throws {SkillError} `revision_changed`
   */
  confirm (reply: FastifyReply, etag: string | undefined): void
}

/** The request names no revision, so none is computed. */
class Unconditional implements RevisionCondition {
  readonly skills: SkillSource

  constructor (skills: SkillSource) {
    this.skills = skills
  }

  confirm (): void {}
}

/** `?revision=` or `If-Match` (RFC 9110 §13.1.1). */
class Conditional implements RevisionCondition {
  readonly skills: SourceAtRevision
  readonly #ifMatch: string | undefined

  constructor (skills: SourceAtRevision, ifMatch: string | undefined) {
    this.skills = skills
    this.#ifMatch = ifMatch
  }

  confirm (reply: FastifyReply, etag: string | undefined): void {
    const { onlyRevision, presentRevision } = this.skills
    if (this.#ifMatch !== undefined) confirmPresent(this.#ifMatch, onlyRevision, presentRevision, ...etag === undefined ? [] : [etag])
    if (onlyRevision !== undefined) reply.header(REVISION_HEADER, onlyRevision)
  }
}

/** The condition of a request that names one skill. */
export function revisionCondition ({ query, headers }: FastifyRequest, skills: SkillSource): RevisionCondition {
  const { revision } = query as { readonly revision?: string }
  const ifMatch = headers['if-match']
  if (revision === undefined && ifMatch === undefined) return new Unconditional(skills)
  return new Conditional(skills.at(revision ?? 'current', ifMatch !== undefined), ifMatch)
}

/** The same for a request with tool calls. */
export interface ToolCondition {
  readonly skills: SkillSource
  /** The revision of everything that the calls have read, if they asked for one. */
  readonly revision: string | undefined
  /** Refuses a skill of another revision, before any call runs; absent when no revision was asked for. */
  readonly confirmSkill?: ConfirmSkill
}

/**
 * The condition of a request that may name several skills. A tag of `If-Match` is a revision here: results have no ETag.
 */
export function toolCondition ({ query, headers }: FastifyRequest, skills: SkillSource): ToolCondition {
  const { revision } = query as { readonly revision?: string }
  const ifMatch = headers['if-match']
  if (revision === undefined && ifMatch === undefined) return { skills, revision: undefined }
  const atRevision = skills.at(revision ?? 'current', ifMatch !== undefined)
  return {
    skills: atRevision,
    get revision () { return atRevision.onlyRevision },
    async confirmSkill ({ name, isDisplayName }) {
      const revisionOf = async (state: SkillState) => (await state.manifest()).revision
      const read = await (isDisplayName ? atRevision.readByDisplayName(name, revisionOf) : atRevision.read(name, revisionOf))
      if (ifMatch !== undefined) confirmPresent(ifMatch, read, atRevision.presentRevision)
    }
  }
}

const revisions = new WeakMap<FastifyRequest, string>()

/** Notes the revision that was read for an answer which does not name it: for its line in the audit log. */
export function noteRevision (request: FastifyRequest, revision: string): void {
  revisions.set(request, revision)
}

export function notedRevision (request: FastifyRequest): string | undefined {
  return revisions.get(request)
}

/**
 * A revision that is only kept never matches: `If-Match` wants the present one.
 * @param read the revision of the answer
 */
function confirmPresent (ifMatch: string, read: string | undefined, present: string | undefined, ...etags: readonly string[]): void {
  if (!isMatch(ifMatch, read === present ? present : undefined, ...etags)) throw new RevisionChangedError(present)
}

function isMatch (ifMatch: string, revision: string | undefined, ...etags: readonly string[]): boolean {
  return matchesStrongly(ifMatch, ...etags, ...revision === undefined ? [] : [`"${revision}"`])
}

/**
 * Whether `If-Match` names neither an answer with this ETag nor the revision in its head. A route that knows revisions has made the
 * same comparison, and has put the revision there.
 */
export function isUnwanted (request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  const ifMatch = request.headers['if-match']
  if (ifMatch === undefined) return false
  const revision = reply.getHeader(REVISION_HEADER)
  return !isMatch(ifMatch, revision === undefined ? undefined : String(revision), etag)
}
