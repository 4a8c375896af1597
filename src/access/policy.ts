import { type YamlFile, parseYamlFile } from '../config/files/yaml-file.ts'
import { ConfigError, quote } from '../config/setting.ts'
import type { Grant } from '../core/skill-manager.ts'
import type { Principal } from '../http/callers.ts'
import { entriesOf, type IssuerEntry, patternOf, type ProxyEntry, readIssuers, readProxy, readRules, type Rule, termsOf, warningsOf } from './entries.ts'
import { type AccessFile, AccessFileSchema, parseExpiry } from './schema.ts'

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

/** Why a request is not its caller's. */
export type Refusal = 'unauthenticated' | 'invalid_credentials' | 'invalid_token' | 'token_expired' | 'wrong_audience' | 'issuer_unavailable'

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

export function refused (refusal: Refusal): Refused {
  return { kind: 'refused', refusal }
}

/** Whether a name stands for other callers than the holder of a token or link. */
export function isReserved (name: string): boolean {
  return name === ANONYMOUS || name.startsWith(GROUP_PREFIX)
}

/** A token or link of the file: requests with it find all of this by one look-up. */
interface SecretEntry {
  readonly proof: Proof
  readonly principal: Principal
}

interface PolicyOptions {
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
  readonly #secrets: Readonly<Record<'token' | 'link', ReadonlyMap<string, SecretEntry>>>
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
    const { anonymous = [], proxy, rules = [] } = file.value
    this.#roots = roots
    this.#anonymous = anonymous
    this.#usedGroups = new Set(rules.flatMap(({ groups }) => groups))
    const names = new Set<string>()
    this.#secrets = { token: this.#readSecrets(file, 'token', names), link: this.#readSecrets(file, 'link', names) }
    this.issuers = readIssuers(file, resource)
    this.proxy = readProxy(file)
    this.#proxyScopes = proxy?.scopes ?? [READ_SCOPE]
    this.vary = ['Authorization', ...this.proxy === undefined ? [] : [this.proxy.userHeader, this.proxy.groupsHeader]].join(', ')
    this.rules = readRules(file, roots)
    this.warnings = warningsOf(file, this.#usedGroups)
  }

  /**
   * The tokens or links by digest.
   * @param names that are taken; those of the entries are added
   */
  #readSecrets (file: YamlFile<AccessFile>, kind: 'token' | 'link', names: Set<string>): ReadonlyMap<string, SecretEntry> {
    const secrets = new Map<string, SecretEntry>()
    for (const [at, { name, sha256, groups = [], scopes = [READ_SCOPE], expires }] of entriesOf(file, kind)) {
      const digest = sha256.toLowerCase()
      if (names.has(name)) throw file.error([...at, 'name'], 'is the name of another token or link')
      if (isReserved(name)) throw file.error([...at, 'name'], `stands for other callers: commands take ${ANONYMOUS} and ${GROUP_PREFIX}G for them`)
      if (secrets.has(digest)) throw file.error([...at, 'sha256'], 'is that of another entry')
      const expiresAt = expires === undefined ? undefined : parseExpiry(expires)
      if (expires !== undefined && expiresAt === undefined) throw file.error([...at, 'expires'], 'is no date of the calendar')
      names.add(name)
      secrets.set(digest, { proof: { kind, digest }, principal: this.#principal({ kind, id: `${kind}:${name}`, name, groups, scopes, expiresAt }) })
    }
    return secrets
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
    return this.rules.filter(({ roots = this.#roots }) => roots.every((root) => skillsIn(root).length > 0)).flatMap((rule) => (rule.patterns ?? [])
      .filter((pattern) => !(rule.roots ?? this.#roots).some((root) => skillsIn(root).some(patternOf(pattern))))
      .map((pattern) => `${rule.where} has the pattern ${quote(pattern)}, which fits no skill`))
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

/** The groups in the key of a view. */
export function groupsOf (view: string): readonly string[] {
  const groups: unknown = JSON.parse(view)
  return Array.isArray(groups) ? groups.map(String) : []
}
