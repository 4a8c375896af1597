import { nearest } from '../../core/ground/nearest.ts'
import { withoutEndSlashes } from '../../core/ground/text.ts'
import { toInstance } from '../problem.ts'

/** A path below a skill that is none of the skill's routes: most likely that of a file. */
const BELOW_SKILL = /^(\/skills\/[^/]+)\/(?!files\/)(.+)$/
const FIRST_SEGMENT = /^\/[^/]*/

/**
 * The address that a client most likely meant by one that does not exist. It lacks the slash at the end, is the file
 * of the skill, or spells the whole path or its first segment otherwise.
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
  const first = FIRST_SEGMENT.exec(closed)?.[0] ?? ''
  const respelt = nearest(first, paths)
  const near = [
    closed,
    closed.replace(BELOW_SKILL, '$1/files/$2'),
    nearest(closed, paths),
    respelt && respelt + closed.slice(first.length)
  ].find((candidate) => candidate !== undefined && candidate !== '' && candidate !== path && exists(basePath + candidate))
  return near === undefined ? undefined : basePath + near
}
