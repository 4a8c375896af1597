import { noSuchRoot, quote } from '../config/setting.ts'
import type { YamlFile, YamlPath } from '../config/files/yaml-file.ts'
import { createSubnets, isSubnet } from '../http/request/client-address.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import { type AccessFile, parseExpiry } from './schema.ts'

type File = YamlFile<AccessFile>
type Entry<Key extends keyof AccessFile> = NonNullable<AccessFile[Key]> extends ReadonlyArray<infer Item> ? Item : never

/** An issuer of the access file. */
export type IssuerEntry = Omit<Entry<'issuers'>, 'audiences'> & { readonly audiences: readonly string[] }

/** The authenticating proxy of the access file. Names of headers are in lower case. */
export interface ProxyEntry {
  isPeer (address: string): boolean
  readonly userHeader: string
  readonly groupsHeader: string
  readonly scopes: readonly string[] | undefined
  /** The entry as text, to compare it with that of another file. */
  readonly text: string
}

/** A rule of the file, and whether it grants a skill. */
export interface Rule {
  /** `FILE:LINE: rules[0]` */
  readonly where: string
  readonly groups: readonly string[]
  readonly roots: readonly string[] | undefined
  readonly patterns: readonly string[] | undefined
  admits (root: string, skill: string): boolean
}

/** The entries of tokens or of links, each with its place in the file. */
export function entriesOf ({ value }: File, kind: 'token' | 'link'): Array<readonly [YamlPath, Entry<'tokens'>]> {
  const key = `${kind}s` as const
  return (value[key] ?? []).map((entry, index) => [[key, index], entry])
}

export function readIssuers (file: File, resource: string | undefined): readonly IssuerEntry[] {
  const names = new Set<string>()
  return (file.value.issuers ?? []).map((entry, index) => {
    if (names.has(entry.issuer)) throw file.error(['issuers', index, 'issuer'], 'is there twice')
    names.add(entry.issuer)
    const audiences = entry.audiences ?? (resource === undefined ? undefined : [resource])
    if (audiences !== undefined) return { ...entry, audiences }
    throw file.error(['issuers', index, 'audiences'], 'is missing, and there is no PUBLIC_URL to take its place')
  })
}

export function readProxy (file: File): ProxyEntry | undefined {
  const { proxy } = file.value
  if (proxy === undefined) return undefined
  const unfit = proxy.peers.findIndex((peer) => !isSubnet(peer))
  if (unfit !== -1) throw file.error(['proxy', 'peers', unfit], 'must be an address or a network such as 10.0.0.0/8')
  return {
    isPeer: createSubnets(proxy.peers),
    userHeader: (proxy.user_header ?? 'x-auth-request-user').toLowerCase(),
    groupsHeader: (proxy.groups_header ?? 'x-auth-request-groups').toLowerCase(),
    scopes: proxy.scopes,
    text: JSON.stringify(proxy)
  }
}

export function readRules (file: File, allRoots: readonly string[]): readonly Rule[] {
  return (file.value.rules ?? []).map(({ groups, roots, skills }, index) => {
    for (const [at, root] of (roots ?? []).entries()) {
      if (!allRoots.includes(root)) throw file.error(['rules', index, 'roots', at], noSuchRoot(root, allRoots))
    }
    const patterns = skills?.map(patternOf)
    return {
      get where () { return `${file.path}:${file.lineOf(['rules', index])}: rules[${index}]` },
      groups,
      roots,
      patterns: skills,
      admits: (root, skill) => roots?.includes(root) !== false && patterns?.some((fits) => fits(skill)) !== false
    }
  })
}

/**
 * What the author of a file may not have meant, one line each.
 * @param used the groups that rules name
 */
export function warningsOf (file: File, used: ReadonlySet<string>): readonly string[] {
  const { anonymous, issuers = [] } = file.value
  const secrets = [...entriesOf(file, 'token'), ...entriesOf(file, 'link')]
  const past = secrets.filter(([, { expires = '' }]) => (parseExpiry(expires) ?? Infinity) <= Date.now())
  const lists: ReadonlyArray<readonly [at: YamlPath, groups: readonly string[] | undefined]> = [
    [['anonymous'], anonymous],
    ...secrets.map(([at, { groups }]) => [[...at, 'groups'], groups] as const),
    ...issuers.map(({ groups }, index) => [['issuers', index, 'groups'], groups] as const)
  ]
  const unused = lists.flatMap(([at, groups = []]) =>
    groups.flatMap((group, index) => used.has(group) ? [] : [[...at, index]]))
  const exposed = issuers.flatMap(({ issuer, jwks_uri: keys }, index) =>
    isExposed(keys ?? issuer) ? [['issuers', index, keys === undefined ? 'issuer' : 'jwks_uri']] : [])
  return [
    ...past.map(([at, { name }]) => file.error([...at, 'expires'], `is past: ${quote(name)} opens nothing`)),
    ...unused.map((at) => file.error(at, 'is a group that no rule names')),
    ...exposed.map((at) => file.error(at, 'is not an https:// address: anyone on the way to it can replace the keys'))
  ].map(({ message }) => message)
}

/** Whether answers from an address can be changed on the way. */
function isExposed (url: string): boolean {
  const [, authority] = /^http:\/\/([^/]+)/.exec(url) ?? []
  return authority !== undefined && !isLoopback(hostOf(authority) ?? '')
}

/**
 * Whether a name fits a text in which `*` stands for any characters. Names come from sources, and a regular expression
 * would let one of them take minutes.
 */
export function patternOf (text: string): (name: string) => boolean {
  const [first = '', ...inner] = text.split('*')
  const last = inner.pop()
  if (last === undefined) return (name) => name === text
  return (name) => {
    let end = first.length
    for (const part of inner) {
      const start = name.indexOf(part, end)
      if (start === -1) return false
      end = start + part.length
    }
    return name.startsWith(first) && name.endsWith(last) && end + last.length <= name.length
  }
}
