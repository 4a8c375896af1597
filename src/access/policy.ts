import { type YamlFile, parseYamlFile } from '../config/files/yaml-file.ts'
import { ConfigError, quote } from '../config/setting.ts'
import type { Grant } from '../core/skill-manager.ts'
import type { Principal } from '../http/callers.ts'
import {
  entriesOf, type IssuerEntry, patternOf, type ProxyEntry, readIssuers, readProxy, readRules, type Rule, warningsOf
} from './entries.ts'
import { type AccessFile, AccessFileSchema, parseExpiry } from './schema.ts'

export const READ_SCOPE = 'skills:read'
export const ANONYMOUS = 'anonymous'
/** Commands name the members of a group so. */
export const GROUP_PREFIX = 'group:'
const AUTHENTICATED = 'authenticated'

/** What a verified token says. It counts for as long as the entry of its issuer stays the same. */
export interface JwtProof {
  readonly kind: 'jwt'
  readonly entry: IssuerEntry
  readonly subject: string
  readonly groups: readonly string[]
  /** Whether the token refers to another place for its groups, as those of Entra do. */
  readonly areGroupsElsewhere: boolean
  readonly scopes: readonly string[]
  readonly expiresAt: number
}

/** How a caller proved who it is, without the secret: enough to say what that is worth under another policy. */
export type Proof =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'token' | 'link', readonly digest: string }
  | JwtProof
  | { readonly kind: 'proxy', readonly user: string, readonly groups: readonly string[], readonly proxy: string }

/** Why a request is refused. */
export type Refusal = 'unauthenticated' | 'invalid_credentials' | 'invalid_token' | 'token_expired' |
  'wrong_audience' | 'issuer_unavailable'

/** An authenticated caller, under one policy. */
export interface Caller {
  readonly kind: 'caller'
  readonly policy: Policy
  readonly proof: Proof
  readonly principal: Principal
}

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

export function refused (refusal: Refusal): Refused {
  return { kind: 'refused', refusal }
}

/** A caller whose proof is still good. An expired link is as one that never was. */
export function unlessExpired (caller: Caller): Caller | Refused {
  const { principal: { expiresAt = Infinity }, proof: { kind } } = caller
  if (expiresAt > Date.now()) return caller
  return refused(kind === 'link' ? 'unauthenticated' : 'token_expired')
}

/** Whether a name stands for other callers than the holder of a token or link. */
export function isReserved (name: string): boolean {
  return name === ANONYMOUS || name.startsWith(GROUP_PREFIX)
}

interface PolicyOptions {
  /** Names of all roots. */
  readonly roots: readonly string[]
  /** The address of `/mcp` as its users type it: the audience of issuers that name none. */
  readonly resource: string | undefined
}

type Secrets = ReadonlyMap<string, Principal>
type Known = Pick<Principal, 'kind' | 'id' | 'name' | 'groups' | 'expiresAt'>

/** The access file as the service uses it. Never changes: a file that changes is another policy. */
export class Policy {
  readonly issuers: readonly IssuerEntry[]
  readonly proxy: ProxyEntry | undefined
  /** Names of the headers that say who asks. */
  readonly vary: string
  readonly rules: readonly Rule[]
  /** What its author may not have meant, one line each. */
  readonly warnings: readonly string[]
  /** Tokens and links by digest: requests with one find its caller by one look-up. */
  readonly #secrets: Readonly<Record<'token' | 'link', Secrets>>
  readonly #anonymous: readonly string[]
  readonly #anonymousPrincipal: Principal | undefined
  readonly #usedGroups: ReadonlySet<string>
  readonly #roots: readonly string[]

  /** @throws ConfigError `FILE:LINE: KEY …`, or when two folders have one name */
  static parse (path: string, text: string, options: PolicyOptions): Policy {
    const { roots } = options
    const twice = roots.find((name, index) => roots.indexOf(name) !== index)
    if (twice === undefined) return new Policy(parseYamlFile(path, text, AccessFileSchema), options)
    const reason = 'with ACCESS_FILE their names must differ, as its rules name them'
    throw new ConfigError(`two folders of skills are called ${quote(twice)}: ${reason}`)
  }

  private constructor (file: YamlFile<AccessFile>, { roots, resource }: PolicyOptions) {
    const { anonymous = [], rules = [] } = file.value
    this.#roots = roots
    this.#anonymous = anonymous
    this.#usedGroups = new Set(rules.flatMap(({ groups }) => groups))
    const names = new Set<string>()
    this.#secrets = { token: this.#readSecrets(file, 'token', names), link: this.#readSecrets(file, 'link', names) }
    const isAdmitted = anonymous.length > 0 || this.#usedGroups.has(ANONYMOUS)
    const everybody = { kind: ANONYMOUS, id: ANONYMOUS, name: ANONYMOUS, groups: [] } as const
    this.#anonymousPrincipal = isAdmitted ? this.#principal(everybody, [READ_SCOPE]) : undefined
    this.issuers = readIssuers(file, resource)
    this.proxy = readProxy(file)
    this.vary = ['Authorization', ...this.proxy ? [this.proxy.userHeader, this.proxy.groupsHeader] : []].join(', ')
    this.rules = readRules(file, roots)
    this.warnings = warningsOf(file, this.#usedGroups)
  }

  /** @param names that are taken; those of the entries are added */
  #readSecrets (file: YamlFile<AccessFile>, kind: 'token' | 'link', names: Set<string>): Secrets {
    const secrets = new Map<string, Principal>()
    for (const [at, { name, sha256, groups = [], scopes = [READ_SCOPE], expires }] of entriesOf(file, kind)) {
      const digest = sha256.toLowerCase()
      const expiresAt = expires === undefined ? undefined : parseExpiry(expires)
      const fail = (key: string, sentence: string) => file.error([...at, key], sentence)
      if (names.has(name)) throw fail('name', 'is the name of another token or link')
      if (isReserved(name)) {
        throw fail('name', `stands for other callers: commands take ${ANONYMOUS} and ${GROUP_PREFIX}G for them`)
      }
      if (secrets.has(digest)) throw fail('sha256', 'is that of another entry')
      if (expires !== undefined && expiresAt === undefined) throw fail('expires', 'is not a date of the calendar')
      names.add(name)
      const known = { kind, id: `${kind}:${name}`, name, groups, ...expiresAt !== undefined && { expiresAt } }
      secrets.set(digest, this.#principal(known, scopes))
    }
    return secrets
  }

  /** Names of the tokens and links. */
  get secretNames (): readonly string[] {
    return this.#holders.map(({ name }) => name)
  }

  /** The holder of the token or link of this name. */
  holderOf (name: string): Principal | undefined {
    return this.#holders.find((holder) => holder.name === name)
  }

  get #holders (): readonly Principal[] {
    return [...this.#secrets.token.values(), ...this.#secrets.link.values()]
  }

  /** The caller behind a proof under this policy; undefined for one that is worth nothing. Expiry is not checked. */
  principalOf (proof: Proof): Principal | undefined {
    switch (proof.kind) {
      case 'anonymous':
        return this.#anonymousPrincipal
      case 'token':
      case 'link':
        return this.#secrets[proof.kind].get(proof.digest)
      case 'jwt': {
        const { kind, entry, subject, groups, scopes, expiresAt } = proof
        const text = JSON.stringify(entry)
        if (!this.issuers.some((each) => JSON.stringify(each) === text)) return undefined
        const id = `jwt:${entry.issuer}#${subject}`
        const known = { kind, id, name: subject, groups: [...groups, ...entry.groups ?? []], expiresAt }
        return this.#principal(known, [...scopes, ...entry.scopes ?? []])
      }
      case 'proxy': {
        const { kind, user, groups } = proof
        if (this.proxy?.text !== proof.proxy) return undefined
        return this.#principal({ kind, id: `proxy:${user}`, name: user, groups }, this.proxy.scopes ?? [READ_SCOPE])
      }
    }
  }

  /** Who is behind a proof now; refused where it is worth nothing, or has expired. */
  authenticate (proof: Proof): Caller | Refused {
    const principal = this.principalOf(proof)
    if (principal === undefined) return refused(proof.kind === 'token' ? 'invalid_token' : 'unauthenticated')
    return unlessExpired({ kind: 'caller', policy: this, proof, principal })
  }

  /** Equal for views that may have the same skills, whichever skills there are, under this policy and others. */
  termsOfView (view: string): string {
    return JSON.stringify(this.#rulesOf(view).map(({ roots, patterns }) => [roots, patterns]))
  }

  #rulesOf (view: string): readonly Rule[] {
    const groups = new Set(JSON.parse(view) as readonly string[])
    return this.rules.filter((rule) => rule.groups.some((group) => groups.has(group)))
  }

  /** What callers of a view may see of each root. */
  grantsOf (view: string): ReadonlyMap<string, Grant> {
    const rules = this.#rulesOf(view)
    return new Map(this.#roots.flatMap((root) => {
      const own = rules.filter(({ roots }) => roots?.includes(root) !== false)
      if (own.length === 0) return []
      const seesAll = own.some(({ patterns }) => patterns === undefined)
      const grant: Grant = seesAll ? 'all' : (name) => own.some((rule) => rule.admits(root, name))
      return [[root, grant] as const]
    }))
  }

  /** A line for each pattern that fits no skill. A root without any, such as a new source, may still get one. */
  unfitPatterns (skillsIn: (root: string) => readonly string[]): readonly string[] {
    return this.rules.flatMap((rule) => {
      const names = (rule.roots ?? this.#roots).map(skillsIn)
      if (names.some(({ length }) => length === 0)) return []
      const unfit = rule.patterns?.filter((pattern) => !names.flat().some(patternOf(pattern))) ?? []
      return unfit.map((pattern) => `${rule.where} has the pattern ${quote(pattern)}, which fits no skill`)
    })
  }

  /** All groups of a caller who has proved to be in some. The anonymous view is a part of every view. */
  groupsOf (groups: readonly string[]): readonly string[] {
    return [ANONYMOUS, ...this.#anonymous, AUTHENTICATED, ...groups]
  }

  /** The key of what some groups see together: groups that no rule names make no difference. */
  viewOf (groups: Iterable<string>): string {
    return JSON.stringify([...new Set(groups)].filter((group) => this.#usedGroups.has(group)).sort())
  }

  #principal (known: Known, scopes: readonly string[]): Principal {
    const groups = known.kind === ANONYMOUS ? [ANONYMOUS, ...this.#anonymous] : this.groupsOf(known.groups)
    return { ...known, groups, scopes: new Set(scopes), view: this.viewOf(groups) }
  }
}
