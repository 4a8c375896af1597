import { encodePath } from '../core/shared/paths.ts'

/** Addresses relative to the page that links to them: they hold below any path prefix, a proxy's too. */
export interface Addresses {
  /** The list: `./`, or as many `../` as the page is deep. */
  readonly home: string
  skill (name: string): string
  /** A file as a page. */
  file (name: string, path: string): string
  /** The bytes of a file. */
  bytes (name: string, path: string): string
  readonly status: string
  /** Any other address of the service, below its prefix: `openapi.json`. */
  at (path: string): string
}

/**
 * @param url the request target as received
 * @param prefix path prefix of the service
 */
export function addressesFrom (url: string, prefix: string): Addresses {
  const [path = ''] = url.split(/[?#]/, 1)
  const depth = path.slice(prefix.length).split('/').length - 2
  const home = depth > 0 ? '../'.repeat(depth) : './'
  return {
    home,
    skill: (name) => `${home}ui/skills/${encodeURIComponent(name)}`,
    file: (name, path) => `${home}ui/skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    bytes: (name, path) => `${home}skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    status: `${home}ui/status`,
    at: (path) => home + path
  }
}
