import { noSuchRoot, quote } from '../config/setting.ts'
import type { YamlFile, YamlPath } from '../config/files/yaml-file.ts'
import { createSubnets, isSubnet } from '../http/request/client-address.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import { type AccessFile, parseExpiry } from './schema.ts'

/** An issuer of the access file. */
export type IssuerEntry = Omit<NonNullable<AccessFile['issuers']>[number], 'audiences'> & { readonly audiences: readonly string[] }

/** The authenticating proxy of the access file. */
export interface ProxyEntry {
  isPeer (address: string): boolean
  /** In lower case. */
  readonly userHeader: string
  readonly groupsHeader: string
  readonly terms: string
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

/** What tokens of an issuer are judged by. Groups and scopes that the entry gives its callers are no part of it. */
export function termsOf ({ groups, scopes, ...checks }: IssuerEntry): string {
  return JSON.stringify(checks)
}

/** The entries of tokens or of links, each with its place in the file. */
export function entriesOf ({ value }: YamlFile<AccessFile>, kind: 'token' | 'link'): Array<readonly [at: YamlPath, entry: NonNullable<AccessFile['tokens']>[number]]> {
  const key = `${kind}s` as const
  return (value[key] ?? []).map((entry, index) => [[key, index], entry])
}

export function readIssuers (file: YamlFile<AccessFile>, resource: string | undefined): readonly IssuerEntry[] {
  const names = new Set<string>()
  return (file.value.issuers ?? []).map((entry, index) => {
    if (names.has(entry.issuer)) throw file.error(['issuers', index, 'issuer'], 'is there twice')
    names.add(entry.issuer)
    const audiences = entry.audiences ?? (resource === undefined ? undefined : [resource])
    if (audiences === undefined) throw file.error(['issuers', index, 'audiences'], 'is missing, and there is no PUBLIC_URL to take its place')
    return { ...entry, audiences }
  })
}

export function readProxy (file: YamlFile<AccessFile>): ProxyEntry | undefined {
  const { proxy } = file.value
  if (proxy === undefined) return undefined
  const unfit = proxy.peers.findIndex((peer) => !isSubnet(peer))
  if (unfit !== -1) throw file.error(['proxy', 'peers', unfit], 'must be an address or a network such as 10.0.0.0/8')
  return {
    isPeer: createSubnets(proxy.peers),
    userHeader: (proxy.user_header ?? 'x-auth-request-user').toLowerCase(),
    groupsHeader: (proxy.groups_header ?? 'x-auth-request-groups').toLowerCase(),
    terms: JSON.stringify([proxy.peers, proxy.user_header, proxy.groups_header])
  }
}

export function readRules (file: YamlFile<AccessFile>, allRoots: readonly string[]): readonly Rule[] {
  return (file.value.rules ?? []).map(({ groups, roots, skills }, index) => {
    for (const [at, root] of (roots ?? []).entries()) if (!allRoots.includes(root)) throw file.error(['rules', index, 'roots', at], noSuchRoot(root, allRoots))
    const patterns = skills?.map(patternOf)
    return {
      // Lines are half of the work for a file of 10,000 rules, and the service asks for none.
      get where () { return `${file.path}:${file.lineOf(['rules', index])}: rules[${index}]` },
      groups,
      roots,
      patterns: skills,
      admits: (root, skill) => (roots === undefined || roots.includes(root)) && (patterns === undefined || patterns.some((fits) => fits(skill)))
    }
  })
}

/**
 * What the author of a file may not have meant, one line each.
 * @param used the groups that rules name
 */
export function warningsOf (file: YamlFile<AccessFile>, used: ReadonlySet<string>): readonly string[] {
  return [...pastSecrets(file), ...unusedGroups(file, used), ...exposedKeys(file)]
}

function pastSecrets (file: YamlFile<AccessFile>): string[] {
  return [...entriesOf(file, 'token'), ...entriesOf(file, 'link')].flatMap(([at, { name, expires = '' }]) =>
    (parseExpiry(expires) ?? Infinity) <= Date.now() ? [file.error([...at, 'expires'], `is past: ${quote(name)} opens nothing`).message] : [])
}

function unusedGroups (file: YamlFile<AccessFile>, used: ReadonlySet<string>): string[] {
  const { anonymous, issuers = [] } = file.value
  const named: ReadonlyArray<readonly [at: YamlPath, groups: readonly string[] | undefined]> = [
    [['anonymous'], anonymous],
    ...[...entriesOf(file, 'token'), ...entriesOf(file, 'link')].map(([at, { groups }]) => [[...at, 'groups'], groups] as const),
    ...issuers.map(({ groups }, index) => [['issuers', index, 'groups'], groups] as const)
  ]
  return named.flatMap(([at, groups = []]) => groups.flatMap((group, index) => used.has(group) ? [] : [file.error([...at, index], 'is a group that no rule names').message]))
}

function exposedKeys (file: YamlFile<AccessFile>): string[] {
  return (file.value.issuers ?? []).flatMap(({ issuer, jwks_uri: keys }, index) => isExposed(keys ?? issuer)
    ? [file.error(['issuers', index, keys === undefined ? 'issuer' : 'jwks_uri'], 'is no https:// address: whoever is on the way to it can put keys of their own into its answer, and tokens for themselves').message]
    : [])
}

/** Whether answers from an address can be changed on the way. */
function isExposed (url: string): boolean {
  const [, authority] = /^http:\/\/([^/]+)/.exec(url) ?? []
  return authority !== undefined && !isLoopback(hostOf(authority) ?? '')
}

/** Whether a name fits a text in which `*` stands for any characters. Names come from sources: a regular expression would let one of them take minutes. */
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
