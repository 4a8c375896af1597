import { type YamlFile, type YamlPath, parseYamlFile } from '../operator/yaml-file.ts'
import { ConfigError, noSuchRoot, quote } from '../operator/setting.ts'
import type { Grant } from '../core/skill-manager.ts'
import type { Principal } from '../http/callers.ts'
import { createSubnets, isSubnet } from '../http/request/client-address.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'
import { parseExpiry } from './expiry.ts'
import { type AccessFile, AccessFileSchema } from './schema.ts'

export const READ_SCOPE = 'skills:read'
export const ANONYMOUS = 'anonymous'
/** Commands name the members of a group so. */
export const GROUP_PREFIX = 'group:'
const AUTHENTICATED = 'authenticated'

/**
 * How a caller proved who it is, without the secret: enough to say what that is worth under another policy. `terms` are what the proof was
 * judged by. Under other terms it is worth nothing, as what it was judged from is not kept.
 */
export type Proof =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'token' | 'link', readonly digest: string }
  | { readonly kind: 'jwt', readonly issuer: string, readonly subject: string, readonly groups: readonly string[], readonly scopes: readonly string[], readonly expiresAt: number, readonly terms: string }
  | { readonly kind: 'proxy', readonly user: string, readonly groups: readonly string[], readonly terms: string }

export type IssuerEntry = Omit<NonNullable<AccessFile['issuers']>[number], 'audiences'> & { readonly audiences: readonly string[] }

/** Whether a name stands for other callers than the holder of a token or link. */
export function isReserved (name: string): boolean {
  return name === ANONYMOUS || name.startsWith(GROUP_PREFIX)
}

/** What tokens of an issuer are judged by. Groups and scopes that the entry gives its callers are no part of it. */
export function termsOf ({ groups, scopes, ...checks }: IssuerEntry): string {
  return JSON.stringify(checks)
}

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

/** A token or link of the file: requests with it find all of this by one look-up. */
interface SecretEntry {
  readonly proof: Proof
  readonly principal: Principal
}

export interface PolicyOptions {
  /** Names of all roots. */
  readonly roots: readonly string[]
  /** The address of `/mcp` as its users type it: the audience of issuers that name none. */
  readonly resource: string | undefined
}

/** The access file as the service uses it. Never changes: a file that changes is another policy. */
export class Policy {
  readonly issuers: readonly IssuerEntry[]
  readonly proxy: ProxyEntry | undefined
  /** Names of the headers that say who asks. */
  readonly vary: string
  readonly rules: readonly Rule[]
  /** What its author may not have meant, one line each. */
  readonly warnings: readonly string[]
  readonly #secrets = { token: new Map<string, SecretEntry>(), link: new Map<string, SecretEntry>() }
  readonly #anonymous: readonly string[]
  readonly #proxyScopes: readonly string[]
  readonly #usedGroups: ReadonlySet<string>
  readonly #roots: readonly string[]
  #anonymousPrincipal: Principal | undefined
  /** By proofs that live as long as their token is remembered. */
  readonly #principals = new WeakMap<Proof, Principal>()

  /** @throws ConfigError `FILE:LINE: KEY …`, or when two folders have one name */
  static parse (path: string, text: string, options: PolicyOptions): Policy {
    const { roots } = options
    const twice = roots.find((name, index) => roots.indexOf(name) !== index)
    if (twice !== undefined) throw new ConfigError(`two folders of skills are called ${quote(twice)}: with ACCESS_FILE their names must differ, as its rules name them`)
    return new Policy(parseYamlFile(path, text, AccessFileSchema), options)
  }

  private constructor (file: YamlFile<AccessFile>, { roots, resource }: PolicyOptions) {
    const { anonymous = [], tokens = [], links = [], issuers = [], proxy, rules = [] } = file.value
    this.#anonymous = anonymous
    this.#usedGroups = new Set(rules.flatMap(({ groups }) => groups))
    const names = new Set<string>()
    const past: string[] = []
    const addSecret = (kind: 'token' | 'link', at: YamlPath, entry: NonNullable<AccessFile['tokens']>[number]): void => {
      const { name, sha256, groups = [], scopes = [READ_SCOPE], expires } = entry
      const digest = sha256.toLowerCase()
      if (names.has(name)) throw file.error([...at, 'name'], 'is the name of another token or link')
      if (isReserved(name)) throw file.error([...at, 'name'], `stands for other callers: commands take ${ANONYMOUS} and ${GROUP_PREFIX}G for them`)
      if (this.#secrets[kind].has(digest)) throw file.error([...at, 'sha256'], 'is that of another entry')
      const expiresAt = expires === undefined ? undefined : parseExpiry(expires)
      if (expires !== undefined && expiresAt === undefined) throw file.error([...at, 'expires'], 'is no date of the calendar')
      if (expiresAt !== undefined && expiresAt <= Date.now()) past.push(file.error([...at, 'expires'], `is past: ${quote(name)} opens nothing`).message)
      names.add(name)
      this.#secrets[kind].set(digest, { proof: { kind, digest }, principal: this.#principal({ kind, id: `${kind}:${name}`, name, groups, scopes, expiresAt }) })
    }
    for (const [index, token] of tokens.entries()) addSecret('token', ['tokens', index], token)
    for (const [index, link] of links.entries()) addSecret('link', ['links', index], link)
    const issuerNames = new Set<string>()
    this.issuers = issuers.map((entry, index) => {
      if (issuerNames.has(entry.issuer)) throw file.error(['issuers', index, 'issuer'], 'is there twice')
      issuerNames.add(entry.issuer)
      const audiences = entry.audiences ?? (resource === undefined ? undefined : [resource])
      if (audiences === undefined) throw file.error(['issuers', index, 'audiences'], 'is missing, and there is no PUBLIC_URL to take its place')
      return { ...entry, audiences }
    })
    const unfit = proxy?.peers.findIndex((peer) => !isSubnet(peer)) ?? -1
    if (unfit !== -1) throw file.error(['proxy', 'peers', unfit], 'must be an address or a network such as 10.0.0.0/8')
    this.proxy = proxy && {
      isPeer: createSubnets(proxy.peers),
      userHeader: (proxy.user_header ?? 'x-auth-request-user').toLowerCase(),
      groupsHeader: (proxy.groups_header ?? 'x-auth-request-groups').toLowerCase(),
      terms: JSON.stringify([proxy.peers, proxy.user_header, proxy.groups_header])
    }
    this.vary = ['Authorization', ...this.proxy === undefined ? [] : [this.proxy.userHeader, this.proxy.groupsHeader]].join(', ')
    this.rules = rules.map(({ groups, roots: ofRule, skills }, index) => {
      for (const [position, root] of (ofRule ?? []).entries()) {
        if (!roots.includes(root)) throw file.error(['rules', index, 'roots', position], noSuchRoot(roots))
      }
      const patterns = skills?.map(patternOf)
      return {
        where: `${file.path}:${file.lineOf(['rules', index])}: rules[${index}]`,
        groups,
        roots: ofRule,
        patterns: skills,
        admits: (root, skill) => (ofRule === undefined || ofRule.includes(root)) && (patterns === undefined || patterns.some((pattern) => pattern.test(skill)))
      }
    })
    this.#proxyScopes = proxy?.scopes ?? [READ_SCOPE]
    this.#roots = roots
    const unused = (at: YamlPath, groups: readonly string[] = []): string[] => groups.flatMap((group, index) =>
      this.#usedGroups.has(group) ? [] : [file.error([...at, index], 'is a group that no rule names').message])
    this.warnings = [
      ...past,
      ...unused(['anonymous'], anonymous),
      ...tokens.flatMap(({ groups }, index) => unused(['tokens', index, 'groups'], groups)),
      ...links.flatMap(({ groups }, index) => unused(['links', index, 'groups'], groups)),
      ...issuers.flatMap(({ groups }, index) => unused(['issuers', index, 'groups'], groups)),
      ...issuers.flatMap(({ issuer, jwks_uri: keys }, index) => isExposed(keys ?? issuer)
        ? [file.error(['issuers', index, keys === undefined ? 'issuer' : 'jwks_uri'], 'is no https:// address: whoever is on the way to it can put keys of their own into its answer, and tokens for themselves').message]
        : [])
    ]
  }

  /** Whether callers without credentials see anything. */
  get admitsAnonymous (): boolean {
    return this.#anonymous.length > 0 || this.#usedGroups.has(ANONYMOUS)
  }

  /** Names of the tokens and links. */
  get secretNames (): readonly string[] {
    return [...this.#secrets.token.values(), ...this.#secrets.link.values()].map(({ principal }) => principal.name)
  }

  /** The proof of the token or link of this name. */
  proofOf (name: string): Proof | undefined {
    for (const kind of ['token', 'link'] as const) {
      for (const { proof, principal } of this.#secrets[kind].values()) if (principal.name === name) return proof
    }
    return undefined
  }

  /** The proof that a token or link of this digest is: the same object each time. */
  proofOfSecret (kind: 'token' | 'link', digest: string): Proof | undefined {
    return this.#secrets[kind].get(digest)?.proof
  }

  /**
   * The caller behind a proof, under this policy; undefined for one that is worth nothing. The same object for the same secret.
   * Expiry is not checked.
   */
  principalOf (proof: Proof): Principal | undefined {
    switch (proof.kind) {
      case 'anonymous':
        if (!this.admitsAnonymous) return undefined
        this.#anonymousPrincipal ??= this.#principal({ kind: ANONYMOUS, id: ANONYMOUS, name: ANONYMOUS, groups: [], scopes: [READ_SCOPE] })
        return this.#anonymousPrincipal
      case 'token':
      case 'link':
        return this.#secrets[proof.kind].get(proof.digest)?.principal
      case 'jwt': {
        let principal = this.#principals.get(proof)
        if (principal === undefined) {
          principal = this.#principalOfJwt(proof)
          if (principal !== undefined) this.#principals.set(proof, principal)
        }
        return principal
      }
      case 'proxy': {
        const { kind, user, groups, terms } = proof
        return this.proxy?.terms !== terms ? undefined : this.#principal({ kind, id: `proxy:${user}`, name: user, groups, scopes: this.#proxyScopes })
      }
    }
  }

  /** Equal for views that may have the same skills, whichever skills there are, under this policy and others. */
  termsOfView (view: string): string {
    return JSON.stringify(this.#rulesOf(view).map(({ roots, patterns }) => [roots, patterns]))
  }

  #rulesOf (view: string): readonly Rule[] {
    const groups = new Set(groupsOf(view))
    return this.rules.filter((rule) => rule.groups.some((group) => groups.has(group)))
  }

  /** What callers of a view may see of each root. */
  grantsOf (view: string): ReadonlyMap<string, Grant> {
    const rules = this.#rulesOf(view)
    return new Map(this.#roots.flatMap((root) => {
      const own = rules.filter(({ roots }) => roots === undefined || roots.includes(root))
      if (own.length === 0) return []
      const grant: Grant = own.some(({ patterns }) => patterns === undefined) ? 'all' : (name) => own.some((rule) => rule.admits(root, name))
      return [[root, grant] as const]
    }))
  }

  /** A line for each pattern that fits no skill. A root without any, such as a source before its first fetch, may get one that it fits. */
  unfitPatterns (skillsIn: (root: string) => readonly string[]): readonly string[] {
    return this.rules.filter(({ roots = this.#roots }) => roots.every((root) => skillsIn(root).length > 0)).flatMap(({ where, roots = this.#roots, patterns = [] }) => patterns
      .filter((pattern) => !roots.some((root) => skillsIn(root).some((name) => patternOf(pattern).test(name))))
      .map((pattern) => `${where} has the pattern ${quote(pattern)}, which fits no skill`))
  }

  /** All groups of a caller who has proved to be in some. The anonymous view is a part of every view. */
  groupsOf (groups: readonly string[]): readonly string[] {
    return [ANONYMOUS, ...this.#anonymous, AUTHENTICATED, ...groups]
  }

  /** The key of what some groups see together: groups that no rule names make no difference. */
  viewOf (groups: Iterable<string>): string {
    return JSON.stringify([...new Set(groups)].filter((group) => this.#usedGroups.has(group)).sort())
  }

  #principalOfJwt ({ kind, issuer, subject, groups, scopes, expiresAt, terms }: Proof & { readonly kind: 'jwt' }): Principal | undefined {
    const entry = this.issuers.find((each) => each.issuer === issuer && termsOf(each) === terms)
    return entry && this.#principal({
      kind, id: `jwt:${issuer}#${subject}`, name: subject, groups: [...groups, ...entry.groups ?? []], scopes: [...scopes, ...entry.scopes ?? []], expiresAt
    })
  }

  #principal ({ kind, id, name, groups, scopes, expiresAt }: Pick<Principal, 'kind' | 'id' | 'name' | 'groups'> & { readonly scopes: readonly string[], readonly expiresAt?: number | undefined }): Principal {
    const all = kind === ANONYMOUS ? [ANONYMOUS, ...this.#anonymous] : this.groupsOf(groups)
    return { id, name, kind, groups: all, scopes: new Set(scopes), view: this.viewOf(all), ...expiresAt !== undefined && { expiresAt } }
  }
}

/** Whether answers from an address can be changed on the way. */
function isExposed (url: string): boolean {
  const [, authority] = /^http:\/\/([^/]+)/.exec(url) ?? []
  return authority !== undefined && !isLoopback(hostOf(authority) ?? '')
}

/** The groups in the key of a view. */
export function groupsOf (view: string): readonly string[] {
  const groups: unknown = JSON.parse(view)
  return Array.isArray(groups) ? groups.map(String) : []
}

/** `*` stands for any characters, everything else for itself. */
export function patternOf (text: string): RegExp {
  return new RegExp(`^${text.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&')).join('[^]*')}$`)
}
