import { LRUCache } from 'lru-cache'
import { parseYamlFile, type YamlFile } from '../operator/yaml-file.ts'
import { ConfigError, noSuchRoot, quote } from '../operator/setting.ts'
import type { Grant, GrantOf, View } from '../core/view.ts'
import { type Principal, READ_SCOPE } from '../http/callers.ts'
import { createSubnets, isSubnet } from '../http/request/client-address.ts'
import { type AccessFile, AccessFileSchema, parseExpiry } from './schema.ts'

export const ANONYMOUS = 'anonymous'
const AUTHENTICATED = 'authenticated'
const MAX_VIEWS = 256

type Entry<Key extends keyof AccessFile> = NonNullable<AccessFile[Key]> extends ReadonlyArray<infer Item> ? Item : never

export type IssuerEntry = Required<Omit<Entry<'issuers'>, 'jwks_uri'>> & Pick<Entry<'issuers'>, 'jwks_uri'>

const ISSUER_DEFAULTS = {
  // RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve.
  algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] satisfies IssuerEntry['algorithms'],
  clock_tolerance: 30,
  groups_claim: 'groups',
  groups: [],
  scopes: []
}

export interface Rule extends Entry<'rules'> {
  /** `FILE:LINE: rules[0]` */
  readonly where: string
  /** Whether the rule grants a skill. */
  admits (root: string, skill: string): boolean
}

/** A caller as its credentials describe it. */
export type Identity = Omit<Principal, 'scopes' | 'view'> & { readonly scopes: readonly string[] }

/** The checked content of an access file. It never changes: a changed file becomes another policy. */
export class Policy {
  readonly issuers: readonly IssuerEntry[]
  readonly proxy: ReturnType<typeof readProxy>
  /** Names of the request headers that identify callers, for `Vary`. */
  readonly vary: string
  readonly rules: readonly Rule[]
  /** Callers with a token, and callers with a link, by the digests of the secrets. */
  readonly tokens: ReadonlyMap<string, Principal>
  readonly links: ReadonlyMap<string, Principal>
  readonly holders: readonly Principal[]
  /** The caller without credentials; undefined when such callers are refused. */
  readonly anonymous: Principal | undefined
  /** Views by the key in `Principal.view`: callers in the same groups share one. */
  readonly views = new LRUCache<string, View>({ max: MAX_VIEWS })
  readonly #file: YamlFile<AccessFile>
  readonly roots: readonly string[]
  readonly #usedGroups: ReadonlySet<string>

  /**
   * @param roots names of all roots
   * @param publicUrl URL of the service; `/mcp` below it is the audience of issuers that name none
   * @throws ConfigError `FILE:LINE: KEY …`, or when two roots have the same name
   */
  constructor (path: string, text: string, roots: readonly string[], publicUrl?: string) {
    const twice = roots.find((name, index) => roots.indexOf(name) !== index)
    if (twice !== undefined) {
      const reason = 'with ACCESS_FILE their names must differ, as its rules name them'
      throw new ConfigError(`two folders of skills are called ${quote(twice)}: ${reason}`)
    }
    const file = parseYamlFile(path, text, AccessFileSchema)
    const { anonymous = [], rules = [], issuers = [] } = file.value
    this.#file = file
    this.roots = roots
    this.#usedGroups = new Set(rules.flatMap(({ groups }) => groups))
    this.rules = rules.map((rule, index) => this.#readRule(rule, index))
    const names = new Set<string>()
    this.tokens = this.#readSecrets('token', names)
    this.links = this.#readSecrets('link', names)
    this.holders = [...this.tokens.values(), ...this.links.values()]
    const isAdmitted = anonymous.length > 0 || this.#usedGroups.has(ANONYMOUS)
    const nobody = { kind: ANONYMOUS, id: ANONYMOUS, name: ANONYMOUS, groups: [], scopes: [READ_SCOPE] } as const
    this.anonymous = isAdmitted ? this.admit(nobody) : undefined
    this.issuers = issuers.map((issuer, index) => this.#readIssuer(issuer, index, publicUrl))
    this.proxy = readProxy(file)
    this.vary = ['Authorization', ...this.proxy ? [this.proxy.userHeader, this.proxy.groupsHeader] : []].join(', ')
  }

  /** Makes the principal of an identity. Every caller is in the groups of anonymous callers too. */
  admit (identity: Identity): Principal {
    const proved = identity.kind === ANONYMOUS ? [] : [AUTHENTICATED, ...identity.groups]
    const groups = [ANONYMOUS, ...this.#file.value.anonymous ?? [], ...proved]
    // Groups that no rule names do not change what a caller sees.
    const view = [...new Set(groups)].filter((group) => this.#usedGroups.has(group)).sort()
    return { ...identity, groups, scopes: new Set(identity.scopes), view: JSON.stringify(view) }
  }

  /** Finds what callers with this view key may see of each root. */
  grantsOf (view: string): GrantOf {
    const groups = new Set(JSON.parse(view) as readonly string[])
    const rules = this.rules.filter((rule) => rule.groups.some((group) => groups.has(group)))
    const grantOf = (root: string): Grant | undefined => {
      const own = rules.filter(({ roots }) => roots?.includes(root) !== false)
      if (own.length === 0) return undefined
      const seesAll = own.some(({ skills }) => skills === undefined)
      return seesAll ? 'all' : (name) => own.some((rule) => rule.admits(root, name))
    }
    // A root that leaves in the same reload as its rules is in no grant.
    const grants = new Map(this.roots.map((root) => [root, grantOf(root)]))
    return (root) => grants.get(root)
  }

  #readRule (rule: Entry<'rules'>, index: number): Rule {
    const { roots, skills } = rule
    for (const [at, root] of roots?.entries() ?? []) {
      const isKnown = this.roots.includes(root)
      if (!isKnown) throw this.#file.error(['rules', index, 'roots', at], noSuchRoot(root, this.roots))
    }
    const patterns = skills?.map(patternOf)
    return {
      ...rule,
      where: `${this.#file.path}:${this.#file.lineOf(['rules', index])}: rules[${index}]`,
      admits: (root, skill) => roots?.includes(root) !== false && patterns?.some((fits) => fits(skill)) !== false
    }
  }

  /** @param names names that are already taken; the function adds those of the entries */
  #readSecrets (kind: 'token' | 'link', names: Set<string>): ReadonlyMap<string, Principal> {
    const key = `${kind}s` as const
    const secrets = new Map<string, Principal>()
    const entries: ReadonlyArray<Entry<'tokens'>> = this.#file.value[key] ?? []
    for (const [index, { name, sha256, groups = [], scopes = [READ_SCOPE], expires }] of entries.entries()) {
      const fail = (field: string, sentence: string) => this.#file.error([key, index, field], sentence)
      const digest = sha256.toLowerCase()
      const expiresAt = expires === undefined ? undefined : parseExpiry(expires)
      if (names.has(name)) throw fail('name', 'is the name of another token or link')
      if (secrets.has(digest)) throw fail('sha256', 'is also that of another entry')
      if (expires !== undefined && expiresAt === undefined) throw fail('expires', 'is not a valid date')
      names.add(name)
      const identity = { kind, id: `${kind}:${name}`, name, groups, scopes }
      secrets.set(digest, this.admit({ ...identity, ...expiresAt !== undefined && { expiresAt } }))
    }
    return secrets
  }

  #readIssuer (entry: Entry<'issuers'>, index: number, publicUrl?: string): IssuerEntry {
    const audiences = entry.audiences ?? (publicUrl === undefined ? [] : [`${publicUrl}/mcp`])
    const fail = (key: string, sentence: string) => this.#file.error(['issuers', index, key], sentence)
    const first = this.#file.value.issuers?.find(({ issuer }) => issuer === entry.issuer)
    if (first !== entry) throw fail('issuer', 'occurs twice')
    const unfit = (['issuer', 'jwks_uri'] as const).find((key) => !URL.canParse(entry[key] ?? 'https://id.example'))
    if (unfit !== undefined) throw fail(unfit, 'is not a URL')
    if (audiences.length === 0) throw fail('audiences', 'is missing: set it, or PUBLIC_URL')
    return { ...ISSUER_DEFAULTS, ...entry, audiences }
  }
}

/** Reads the settings of the authenticating proxy. Names of headers are in lower case, as Node has them. */
function readProxy ({ value: { proxy }, error }: YamlFile<AccessFile>) {
  if (proxy === undefined) return undefined
  const unfit = proxy.peers.findIndex((peer) => !isSubnet(peer))
  if (unfit !== -1) throw error(['proxy', 'peers', unfit], 'must be an address or a network such as 10.0.0.0/8')
  return {
    isPeer: createSubnets(proxy.peers),
    userHeader: (proxy.user_header ?? 'x-auth-request-user').toLowerCase(),
    groupsHeader: (proxy.groups_header ?? 'x-auth-request-groups').toLowerCase(),
    scopes: proxy.scopes ?? [READ_SCOPE]
  }
}

/**
 * Makes a function that matches names against a pattern in which `*` stands for any characters. A regular expression
 * could take minutes for a hostile name.
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
