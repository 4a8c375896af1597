import { encodePath } from '../core/shared/paths.ts'

export type Addresses = Readonly<ReturnType<typeof addressesFrom>>

/**
 * Addresses relative to the page that links to them: they hold below any path prefix, a proxy's too.
 * @param url the request target as received
 * @param prefix path prefix of the service
 */
export function addressesFrom (url: string, prefix: string) {
  const [path = ''] = url.split(/[?#]/, 1)
  const depth = path.slice(prefix.length).split('/').length - 2
  const home = depth > 0 ? '../'.repeat(depth) : './'
  return {
    /** The list: `./`, or as many `../` as the page is deep. */
    home,
    status: `${home}ui/status`,
    skill: (name: string) => `${home}ui/skills/${encodeURIComponent(name)}`,
    /** A file as a page. */
    file: (name: string, path: string) => `${home}ui/skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    /** The bytes of a file. */
    bytes: (name: string, path: string) => `${home}skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    /** Any other address of the service, below its prefix: `openapi.json`. */
    at: (path: string) => home + path
  }
}
