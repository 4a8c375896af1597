import { nearest } from '../../core/shared/nearest.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { HttpProblem, toInstance } from '../problem.ts'

/** A path below a skill that is none of the skill's routes: most likely that of a file. */
const BELOW_SKILL = /^((?:\/ui)?\/skills\/[^/]+)\/(?!files\/)(.+)$/
const FILES_RESPELT = /^((?:\/ui)?\/skills\/[^/]+)\/files?(?=\/)/i
const ARCHIVE = /^(?:\/ui)?(\/skills\/[^/]+\/archive)(?:\.\w+)*$/i
/** Below it are the pages for people: their spelling is compared with each other, and no address of the API is taken for one of them. */
const PAGES = '/ui/'
/** How many beginnings of a path are compared: the longest has as many segments. */
const MAX_SEGMENTS = 3

/** A 404 that may know what was meant. */
export class NoRoute extends HttpProblem {
  /** A path, with the prefix of the service. */
  readonly near: string | undefined

  constructor (sentence: string, near: string | undefined) {
    super('route_not_found', near === undefined ? sentence : `${sentence}; did you mean ${near}?`)
    this.near = near
  }
}

/**
 * The address that a client most likely meant by one that does not exist. It lacks the slash at the end, is the archive or a
 * file of the skill, or spells the whole path or its beginning otherwise.
 * @param url the request target as received
 * @param basePath path prefix of the routes, also of the address
 * @param paths those of the routes there are, without the prefix, up to their first parameter: `/skills`, `/agent/tool-call`
 * @param exists whether a path has a route
 */
export function nearestRoute (url: string, basePath: string, paths: readonly string[], exists: (path: string) => boolean): string | undefined {
  const target = toInstance(url)
  if (!target.startsWith(basePath)) return undefined
  const path = target.slice(basePath.length)
  const closed = withoutEndSlashes(path)
  const alike = paths.filter((each) => each.startsWith(PAGES) === path.startsWith(PAGES))
  const near = [
    closed,
    closed.replace(ARCHIVE, '$1.zip'),
    closed.replace(FILES_RESPELT, '$1/files'),
    closed.replace(BELOW_SKILL, '$1/files/$2'),
    nearest(closed, alike),
    ...beginnings(closed).map((beginning) => {
      const respelt = nearest(beginning, alike)
      return respelt && respelt + closed.slice(beginning.length)
    })
  ].find((candidate) => candidate !== undefined && candidate !== '' && candidate !== path && exists(basePath + candidate))
  return near === undefined ? undefined : basePath + near
}

function beginnings (path: string): string[] {
  const [, ...segments] = path.split('/', MAX_SEGMENTS + 1)
  return segments.map((_, index) => `/${segments.slice(0, index + 1).join('/')}`)
}
