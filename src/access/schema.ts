import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { SCOPES } from '../http/callers.ts'
import { StringEnum } from '../schemas/typebox.ts'

const Closed = { additionalProperties: false }

/** Names of tokens and links. `anonymous` and `group:G` are excluded, because commands use them for other callers. */
export const NAME = /^(?!anonymous$|group:)[\w.@:/+-]{1,200}$/
/** What NAME matches, for messages. */
export const NAME_FORM = 'name of letters, digits and . _ @ : / + -, other than anonymous and group:…'

/** Names of groups, as in directories: `Platform Team (Köln)`. Not with `,`, `;` and `|`, which separate groups. */
export const GROUP = /^(?!\p{Z})[^\p{C},;|]{1,200}(?<!\p{Z})$/u
/** What GROUP matches, for messages. */
export const GROUP_FORM = 'at most 200 characters, no , ; | and no space at its ends'

const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/

const Group = Type.String({ pattern: GROUP.source, title: `the name of a group: ${GROUP_FORM}` })
const Url = Type.String({ pattern: '^https?://[^\\s?#]+$', title: 'a URL such as https://id.example' })

function list<Item extends TSchema> (item: Item, description?: string) {
  return Type.Array(item, { minItems: 1, ...description !== undefined && { description } })
}

function scopes (description: string) {
  return Type.Optional(Type.Array(StringEnum(SCOPES), { description }))
}

function header (description: string) {
  return Type.Optional(Type.String({ pattern: '^[A-Za-z\\d-]{1,100}$', title: 'the name of a header', description }))
}

const Secret = {
  name: Type.String({ pattern: NAME.source, title: `a ${NAME_FORM}` }),
  sha256: Type.String({
    pattern: '^[\\da-fA-F]{64}$', title: 'the 64 hex digits that skillserve token prints, never the token itself'
  }),
  groups: Type.Optional(Type.Array(Group)),
  expires: Type.Optional(Type.String({
    pattern: DATE.source,
    title: 'a date such as 2027-03-01, or a date and time such as 2027-03-01T12:00:00Z',
    description: 'Refused from then on; a date begins at 00:00 UTC'
  }))
}

const Algorithm = StringEnum([
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'
])

const Issuer = Type.Object({
  issuer: Url,
  audiences: Type.Optional(list(
    Type.String({ minLength: 1 }), 'Default: the address of /mcp below PUBLIC_URL'
  )),
  jwks_uri: Type.Optional(Type.String({
    pattern: '^https?://[^\\s#]+$',
    title: 'a URL such as https://id.example/keys',
    description: 'Default: the jwks_uri in the metadata of the issuer'
  })),
  algorithms: Type.Optional(list(Algorithm, 'Default: RS256, PS256, ES256, EdDSA, Ed25519')),
  clock_tolerance: Type.Optional(Type.Integer({ minimum: 0, maximum: 60, description: 'In seconds. Default: 30' })),
  groups_claim: Type.Optional(Type.String({
    minLength: 1, description: 'The name of a claim, or names joined by dots. Default: groups'
  })),
  groups: Type.Optional(Type.Array(Group, { description: 'Groups of every caller of this issuer' })),
  scopes: scopes('Scopes that its tokens need not name')
}, Closed)

const Proxy = Type.Object({
  peers: list(Type.String(), 'Addresses and networks such as 10.0.0.0/8'),
  user_header: header('Default: X-Auth-Request-User'),
  groups_header: header('Default: X-Auth-Request-Groups'),
  scopes: scopes('Default: skills:read')
}, { ...Closed, description: 'Identity headers of an authenticating proxy, accepted from these peers only' })

const Rule = Type.Object({
  groups: list(Group),
  roots: Type.Optional(list(Type.String({ minLength: 1 }), 'Names of folders of skills. Default: all of them')),
  skills: Type.Optional(list(
    Type.String({ minLength: 1, maxLength: 255 }), 'Names; * stands for any characters. Default: all skills'
  ))
}, Closed)

/** The access file: callers, and rules for what they see. */
export const AccessFileSchema = Type.Object({
  anonymous: Type.Optional(Type.Array(Group, {
    description: 'Groups of callers without credentials; every other caller is in them too. Absent or empty: ' +
      'such callers are refused, unless a rule names the group anonymous'
  })),
  tokens: Type.Optional(Type.Array(Type.Object({ ...Secret, scopes: scopes('Default: skills:read') }, Closed))),
  links: Type.Optional(Type.Array(Type.Object(Secret, Closed), {
    description: 'Secret paths for clients of discovery that cannot send a header'
  })),
  issuers: Type.Optional(Type.Array(Issuer)),
  proxy: Type.Optional(Proxy),
  rules: Type.Optional(Type.Array(Rule, { description: 'A caller sees a skill if any rule grants it' }))
}, Closed)

export type AccessFile = Static<typeof AccessFileSchema>

/** Returns when a token or link expires, in milliseconds since 1970; undefined for a date that does not exist. */
export function parseExpiry (text: string): number | undefined {
  const time = DATE.test(text) ? Date.parse(text) : NaN
  // V8 parses 30 February as 2 March.
  const day = new Date(`${text.slice(0, 10)}T00:00Z`).getUTCDate()
  return Number.isNaN(time) || day !== Number(text.slice(8, 10)) ? undefined : time
}
