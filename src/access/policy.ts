import { parseYamlFile, type YamlFile, type YamlPath } from '../config/files/yaml-file.ts'
import { ConfigError, noSuchRoot, quote } from '../config/setting.ts'
import type { Grant } from '../core/skill-manager.ts'
import type { Principal } from '../http/callers.ts'
import { createSubnets, isSubnet } from '../http/request/client-address.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import { patternOf } from './patterns.ts'
import { type AccessFile, AccessFileSchema, parseExpiry } from './schema.ts'

export const READ_SCOPE = 'skills:read'
export const ANONYMOUS = 'anonymous'
const AUTHENTICATED = 'authenticated'

type Entry<Key extends keyof AccessFile> = NonNullable<AccessFile[Key]> extends ReadonlyArray<infer Item> ? Item : never

/** An issuer of the access file. */
export type IssuerEntry = Required<Omit<Entry<'issuers'>, 'jwks_uri'>> & Pick<Entry<'issuers'>, 'jwks_uri'>

const ISSUER_DEFAULTS = {
  // RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve.
  algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] satisfies IssuerEntry['algorithms'],
  clock_tolerance: 30,
  groups_claim: 'groups',
  groups: [],
  scopes: []
}

/** The authenticating proxy of the access file. Names of headers are in lower case. */
interface ProxyEntry {
  isPeer (address: string): boolean
  readonly userHeader: string
  readonly groupsHeader: string
  readonly scopes: readonly string[]
}

/** A rule of the file. */
export interface Rule extends Entry<'rules'> {
  /** `FILE:LINE: rules[0]` */
  readonly where: string
  /** Whether it grants a skill. */
  admits (root: string, skill: string): boolean
}

/** What a caller has proved to be. */
export type Identity = Omit<Principal, 'scopes' | 'view'> & { readonly scopes: readonly string[] }

interface PolicyOptions {
  /** Names of all roots. */
  readonly roots: readonly string[]
  /** Of the service: `/mcp` below it is the audience of issuers that name none. */
  readonly publicUrl: string | undefined
}

/** The access file as the service uses it. Never changes: a file that changes is another policy. */
export class Policy {
  readonly issuers: readonly IssuerEntry[]
  readonly proxy: ProxyEntry | undefined
  /** Names of the headers that say who asks. */
  readonly vary: string
  readonly rules: readonly Rule[]
  /** What its author may not have meant, one line each. */
  readonly warnings: string[] = []
  /** Holders of tokens and of links, by the digests of their secrets. */
  readonly tokens: ReadonlyMap<string, Principal>
  readonly links: ReadonlyMap<string, Principal>
  /** Callers without credentials; undefined where they are not admitted. */
  readonly anonymous: Principal | undefined
  readonly #file: YamlFile<AccessFile>
  readonly #roots: readonly string[]
  readonly #anonymousGroups: readonly string[]
  readonly #usedGroups: ReadonlySet<string>

  /** @throws ConfigError `FILE:LINE: KEY …`, or when two folders have one name */
  constructor (path: string, text: string, { roots, publicUrl }: PolicyOptions) {
    const twice = roots.find((name, index) => roots.indexOf(name) !== index)
    if (twice !== undefined) {
      const reason = 'with ACCESS_FILE their names must differ, as its rules name them'
      throw new ConfigError(`two folders of skills are called ${quote(twice)}: ${reason}`)
    }
    const file = parseYamlFile(path, text, AccessFileSchema)
    const { anonymous = [], rules = [], issuers = [] } = file.value
    this.#file = file
    this.#roots = roots
    this.#anonymousGroups = anonymous
    this.#usedGroups = new Set(rules.flatMap(({ groups }) => groups))
    this.rules = rules.map((rule, index) => this.#readRule(rule, index))
    this.#warnOfUnusedGroups(['anonymous'], anonymous)
    const names = new Set<string>()
    this.tokens = this.#readSecrets('token', names)
    this.links = this.#readSecrets('link', names)
    const isAdmitted = anonymous.length > 0 || this.#usedGroups.has(ANONYMOUS)
    const nobody = { kind: ANONYMOUS, id: ANONYMOUS, name: ANONYMOUS, groups: [], scopes: [READ_SCOPE] } as const
    this.anonymous = isAdmitted ? this.admit(nobody) : undefined
    this.issuers = issuers.map((issuer, index) => this.#readIssuer(issuer, index, publicUrl))
    this.proxy = this.#readProxy()
    this.vary = ['Authorization', ...this.proxy ? [this.proxy.userHeader, this.proxy.groupsHeader] : []].join(', ')
  }

  /** The holders of all tokens and links. */
  get holders (): readonly Principal[] {
    return [...this.tokens.values(), ...this.links.values()]
  }

  /** The caller of this identity, with its view. */
  admit (identity: Identity): Principal {
    const groups = identity.kind === ANONYMOUS
      ? [ANONYMOUS, ...this.#anonymousGroups]
      : this.groupsOf(identity.groups)
    return { ...identity, groups, scopes: new Set(identity.scopes), view: this.viewOf(groups) }
  }

  /** All groups of a caller who has proved to be in some. The anonymous view is a part of every view. */
  groupsOf (groups: readonly string[]): readonly string[] {
    return [ANONYMOUS, ...this.#anonymousGroups, AUTHENTICATED, ...groups]
  }

  /** The key of what some groups see together: groups that no rule names make no difference. */
  viewOf (groups: readonly string[]): string {
    return JSON.stringify([...new Set(groups)].filter((group) => this.#usedGroups.has(group)).sort())
  }

  /** What callers of a view may see of each root. */
  grantsOf (view: string): ReadonlyMap<string, Grant> {
    const groups = new Set(JSON.parse(view) as readonly string[])
    const rules = this.rules.filter((rule) => rule.groups.some((group) => groups.has(group)))
    return new Map(this.#roots.flatMap((root) => {
      const own = rules.filter(({ roots }) => roots?.includes(root) !== false)
      if (own.length === 0) return []
      const seesAll = own.some(({ skills }) => skills === undefined)
      const grant: Grant = seesAll ? 'all' : (name) => own.some((rule) => rule.admits(root, name))
      return [[root, grant] as const]
    }))
  }

  /** A line for each pattern that fits no skill. A root without any, such as a new source, may still get one. */
  unfitPatterns (skillsIn: (root: string) => readonly string[]): readonly string[] {
    return this.rules.flatMap((rule) => {
      const names = (rule.roots ?? this.#roots).map(skillsIn)
      if (names.some(({ length }) => length === 0)) return []
      const unfit = rule.skills?.filter((pattern) => !names.flat().some(patternOf(pattern))) ?? []
      return unfit.map((pattern) => `${rule.where} has the pattern ${quote(pattern)}, which fits no skill`)
    })
  }

  #readRule (rule: Entry<'rules'>, index: number): Rule {
    const { roots, skills } = rule
    for (const [at, root] of roots?.entries() ?? []) {
      const isKnown = this.#roots.includes(root)
      if (!isKnown) throw this.#file.error(['rules', index, 'roots', at], noSuchRoot(root, this.#roots))
    }
    const patterns = skills?.map(patternOf)
    return {
      ...rule,
      where: `${this.#file.path}:${this.#file.lineOf(['rules', index])}: rules[${index}]`,
      admits: (root, skill) => roots?.includes(root) !== false && patterns?.some((fits) => fits(skill)) !== false
    }
  }

  /** @param names that are taken; those of the entries are added */
  #readSecrets (kind: 'token' | 'link', names: Set<string>): ReadonlyMap<string, Principal> {
    const key = `${kind}s` as const
    const secrets = new Map<string, Principal>()
    const entries: ReadonlyArray<Entry<'tokens'>> = this.#file.value[key] ?? []
    for (const [index, { name, sha256, groups = [], scopes = [READ_SCOPE], expires }] of entries.entries()) {
      const fail = (field: string, sentence: string) => this.#file.error([key, index, field], sentence)
      const digest = sha256.toLowerCase()
      const expiresAt = expires === undefined ? undefined : parseExpiry(expires)
      if (names.has(name)) throw fail('name', 'is the name of another token or link')
      if (secrets.has(digest)) throw fail('sha256', 'is that of another entry')
      if (expires !== undefined && expiresAt === undefined) throw fail('expires', 'is not a date of the calendar')
      if (expiresAt !== undefined && expiresAt <= Date.now()) {
        this.#warn([key, index, 'expires'], `is past: ${quote(name)} opens nothing`)
      }
      this.#warnOfUnusedGroups([key, index, 'groups'], groups)
      names.add(name)
      const identity = { kind, id: `${kind}:${name}`, name, groups, scopes }
      secrets.set(digest, this.admit({ ...identity, ...expiresAt !== undefined && { expiresAt } }))
    }
    return secrets
  }

  #readIssuer (entry: Entry<'issuers'>, index: number, publicUrl?: string): IssuerEntry {
    const { issuer, groups = [], jwks_uri: uri } = entry
    const audiences = entry.audiences ?? (publicUrl === undefined ? [] : [`${publicUrl}/mcp`])
    const fail = (key: string, sentence: string) => this.#file.error(['issuers', index, key], sentence)
    const first = this.#file.value.issuers?.find((each) => each.issuer === issuer)
    if (first !== entry) throw fail('issuer', 'is there twice')
    if (audiences.length === 0) throw fail('audiences', 'is missing, and there is no PUBLIC_URL to take its place')
    this.#warnOfUnusedGroups(['issuers', index, 'groups'], groups)
    if (isExposed(uri ?? issuer)) {
      const key = uri === undefined ? 'issuer' : 'jwks_uri'
      this.#warn(['issuers', index, key], 'is not an https:// address: anyone on the way to it can replace the keys')
    }
    return { ...ISSUER_DEFAULTS, ...entry, audiences }
  }

  #readProxy (): ProxyEntry | undefined {
    const { proxy } = this.#file.value
    if (proxy === undefined) return undefined
    const unfit = proxy.peers.findIndex((peer) => !isSubnet(peer))
    if (unfit !== -1) {
      throw this.#file.error(['proxy', 'peers', unfit], 'must be an address or a network such as 10.0.0.0/8')
    }
    return {
      isPeer: createSubnets(proxy.peers),
      userHeader: (proxy.user_header ?? 'x-auth-request-user').toLowerCase(),
      groupsHeader: (proxy.groups_header ?? 'x-auth-request-groups').toLowerCase(),
      scopes: proxy.scopes ?? [READ_SCOPE]
    }
  }

  #warnOfUnusedGroups (at: YamlPath, groups: readonly string[]): void {
    for (const [index, group] of groups.entries()) {
      if (!this.#usedGroups.has(group)) this.#warn([...at, index], 'is a group that no rule names')
    }
  }

  #warn (at: YamlPath, sentence: string): void {
    this.warnings.push(this.#file.error(at, sentence).message)
  }
}

/** Whether answers from an address can be changed on the way. */
function isExposed (url: string): boolean {
  const [, authority] = /^http:\/\/([^/]+)/.exec(url) ?? []
  return authority !== undefined && !isLoopback(hostOf(authority) ?? '')
}
