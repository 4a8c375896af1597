import { ConfigError, didYouMean, quote } from '../operator/setting.ts'
import { counted } from '../core/shared/text.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { type Principal, READ_SCOPE } from '../http/callers.ts'
import { ANONYMOUS, type Policy } from './policy.ts'

const GROUP_PREFIX = 'group:'

/**
 * @param name name of a token or link, `anonymous`, or `group:G`
 * @throws ConfigError for an unknown caller
 */
export function findCaller (policy: Policy, name: string): Principal {
  if (name.startsWith(GROUP_PREFIX)) {
    const groups = [name.slice(GROUP_PREFIX.length)]
    return policy.admit({ kind: 'token', id: name, name, groups, scopes: [READ_SCOPE] })
  }
  const nobody = { kind: ANONYMOUS, id: name, name, groups: [], scopes: new Set([READ_SCOPE]), view: '[]' } as const
  if (name === ANONYMOUS) return policy.anonymous ?? nobody
  const found = policy.holders.find((holder) => holder.name === name)
  if (found !== undefined) return found
  const near = didYouMean(name, policy.holders.map(({ name }) => name))
  throw new ConfigError(`${quote(name)} is not a token or link of the access file${near}`)
}

/** Returns the rows of a table: each skill of each folder, and whether each caller sees it. */
export function describeAll (policy: Policy, skills: SkillManager): ReadonlyArray<readonly string[]> {
  const callers = [policy.anonymous ?? [], policy.holders].flat().map((caller) => ({ caller, seen: new Set<string>() }))
  const cellOf = ({ caller, seen }: typeof callers[number], root: string, name: string): string => {
    const isGranted = refusalOf(caller) === undefined && policy.rules.some((rule) =>
      rule.groups.some((group) => caller.groups.includes(group)) && rule.admits(root, name))
    // On a name clash the first root wins.
    if (!isGranted || seen.has(name)) return isGranted ? 'shadowed' : '-'
    seen.add(name)
    return 'yes'
  }
  const rows = skills.rootNames.flatMap((root) => skills.skillsIn(root).map((name) =>
    [name, root, ...callers.map((each) => cellOf(each, root, name))]))
  return [['SKILL', 'FOLDER', ...callers.map(({ caller }) => caller.name)], ...rows]
}

/** Describes what a caller sees: a sentence, and a row of name, root and reason for each skill. */
export function describeCaller (
  policy: Policy, skills: SkillManager, caller: string
): { readonly summary: string, readonly rows: ReadonlyArray<readonly string[]> } {
  const principal = findCaller(policy, caller)
  const { groups } = principal
  const refusal = refusalOf(principal)
  if (refusal !== undefined) return { summary: refusal, rows: [] }
  const seen = new Set<string>()
  const rules = policy.rules.filter((rule) => rule.groups.some((group) => groups.includes(group)))
  const rows = skills.rootNames.flatMap((root) => skills.skillsIn(root).flatMap((name) => {
    const rule = rules.find((each) => each.admits(root, name))
    if (rule === undefined) return []
    // On a name clash the first root wins.
    const note = seen.has(name) ? ' (hidden by the same name in an earlier folder)' : ''
    seen.add(name)
    const granted = rule.groups.filter((group) => groups.includes(group)).join(', ')
    return [[name, root, `${rule.where} for ${granted}${note}`]]
  }))
  const where = groups.length === 0 ? 'no group' : `the groups ${groups.join(', ')}`
  return { summary: `${caller} is in ${where} and sees ${counted(seen.size, 'skill')}`, rows }
}

/**
 * Lists who sees a skill, a line for each caller.
 * @throws ConfigError for a skill that there is not
 */
export function describeSkill (policy: Policy, skills: SkillManager, skill: string): readonly string[] {
  const folders = skills.rootNames.filter((root) => skills.skillsIn(root).includes(skill))
  if (folders.length === 0) {
    const near = didYouMean(skill, skills.rootNames.flatMap((root) => skills.skillsIn(root)))
    throw new ConfigError(`no folder has a skill ${quote(skill)}${near}`)
  }
  const callers = [policy.anonymous ?? [], policy.holders].flat().filter((each) => refusalOf(each) === undefined)
  return folders.flatMap((root) => {
    const groups = new Set(policy.rules.filter((rule) => rule.admits(root, skill)).flatMap((rule) => rule.groups))
    const who = groups.size === 0 ? 'no rule grants it' : `seen by the groups ${[...groups].join(', ')}`
    const seeing = callers.filter((each) => each.groups.some((group) => groups.has(group)))
    return [`${skill} in ${root}: ${who}`, ...seeing.map(({ name }) => `  ${name}`)]
  })
}

/** Explains why the service refuses a caller, whatever rules grant to its groups; undefined if it does not. */
export function refusalOf ({ name, scopes, expiresAt = Infinity }: Principal): string | undefined {
  if (expiresAt <= Date.now()) {
    return `${name} expired at ${new Date(expiresAt).toISOString().replace('.000', '')}: it sees no skills`
  }
  if (scopes.has(READ_SCOPE)) return undefined
  return `${name} has the scopes ${[...scopes].join(', ') || '(none)'} and lacks ${READ_SCOPE}: it sees no skills`
}
