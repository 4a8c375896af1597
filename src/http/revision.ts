import type { FastifyReply, FastifyRequest } from 'fastify'
import { RevisionChangedError } from '../core/shared/errors.ts'
import type { SourceAtRevision, SkillSource } from '../core/service.ts'
import type { ConfirmSkill } from '../tools/calls/confirm-skills.ts'
import { matchesEtag } from './etag.ts'
import { REVISION_HEADER } from './headers.ts'

/** The revision in which a request wants its skills, and the conditions on its answer. */
export interface RevisionCondition {
  /** In the wanted revision, when one is wanted. */
  readonly skills: SkillSource
  /**
   * Names the revision in the answer, and refuses an answer that `If-Match` does not want. Called when the answer is
   * known.
   * @throws {SkillError} `revision_changed`
   */
  confirm (reply: FastifyReply, etag: string | undefined): void
}

/**
 * The skills in the revision that the request asks for by `?revision=` or `If-Match` (RFC 9110 §13.1.1); undefined for
 * one that asks for none.
 */
function wantedRevision ({ query, headers }: FastifyRequest, skills: SkillSource): SourceAtRevision | undefined {
  const { revision } = query as { readonly revision?: string }
  const isGuarded = headers['if-match'] !== undefined
  return revision === undefined && !isGuarded ? undefined : skills.at(revision ?? 'current', isGuarded)
}

/** The condition of a request that names one skill. */
export function revisionCondition (request: FastifyRequest, skills: SkillSource): RevisionCondition {
  const wanted = wantedRevision(request, skills)
  if (wanted === undefined) return { skills, confirm () {} }
  return {
    skills: wanted,
    confirm (reply, etag) {
      const { onlyRevision, presentRevision } = wanted
      confirmPresent(request, onlyRevision, presentRevision, etag)
      if (onlyRevision !== undefined) reply.header(REVISION_HEADER, onlyRevision)
    }
  }
}

/** The condition of a request with tool calls, which may name several skills. */
export interface ToolCondition {
  readonly skills: SkillSource
  /** The revision of everything that the calls have read, if they asked for one. */
  readonly revision: string | undefined
  /** Refuses a skill of another revision, before any call runs; absent when no revision was asked for. */
  readonly confirmSkill?: ConfirmSkill
}

export function toolCondition (request: FastifyRequest, skills: SkillSource): ToolCondition {
  const wanted = wantedRevision(request, skills)
  if (wanted === undefined) return { skills, revision: undefined }
  return {
    skills: wanted,
    get revision () { return wanted.onlyRevision },
    async confirmSkill ({ name, isDisplayName }) {
      const { revision } = await (isDisplayName
        ? wanted.readByDisplayName(name, (state) => state.manifest())
        : wanted.read(name, (state) => state.manifest()))
      confirmPresent(request, revision, wanted.presentRevision)
    }
  }
}

const revisions = new WeakMap<FastifyRequest, string>()

/** Notes the revision that was read for an answer which does not name it, for its line in the audit log. */
export function noteRevision (request: FastifyRequest, revision: string): void {
  revisions.set(request, revision)
}

export function notedRevision (request: FastifyRequest): string | undefined {
  return revisions.get(request)
}

/**
 * A revision that is only kept never matches: `If-Match` wants the present one.
 * @param read the revision of the answer
 * @throws {RevisionChangedError}
 */
function confirmPresent (
  { headers }: FastifyRequest, read: string | undefined, present: string | undefined, etag?: string
): void {
  const ifMatch = headers['if-match']
  if (ifMatch !== undefined && !matchesEtag(ifMatch, ...tags(read === present ? present : undefined, etag))) {
    throw new RevisionChangedError(present)
  }
}

/** Whether `If-Match` names neither this ETag nor the revision in the head of the answer. */
export function isUnwanted ({ headers }: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  const ifMatch = headers['if-match']
  return ifMatch !== undefined && !matchesEtag(ifMatch, ...tags(reply.getHeader(REVISION_HEADER), etag))
}

function tags (revision: unknown, etag: string | undefined): string[] {
  return [revision === undefined ? [] : `"${String(revision)}"`, etag ?? []].flat()
}
