import { openRoots } from '../config/roots.ts'
import { ConfigError, didYouMean, type Environment, quote } from '../config/setting.ts'
import { readSetting, readTextFile } from '../config/files/yaml-file.ts'
import type { Config } from '../config/settings.ts'
import { ROOT_PROBLEMS } from '../core/roots/root.ts'
import { SILENT } from '../core/shared/log.ts'
import { counted } from '../core/shared/text.ts'
import type { SkillManagerOptions } from '../core/skill-manager.ts'
import { SkillManager } from '../core/skill-manager.ts'
import type { View } from '../core/view.ts'
import type { Rule } from './entries.ts'
import { ANONYMOUS, GROUP_PREFIX, Policy, READ_SCOPE } from './policy.ts'
import type { Principal } from '../http/callers.ts'

/** Neither: the file is only checked. */
interface AccessQuestion {
  /** Name of a token or link, `anonymous`, or `group:G`. */
  readonly caller?: string
  readonly skill?: string
}

/** What one caller sees, for a door that serves nobody else. */
interface CallersView {
  readonly skills: SkillManager
  readonly service: View
}

/**
 * The view of a caller.
 * @param caller name of a token or link, `anonymous`, or `group:G`
 * @throws ConfigError also for a caller who is unknown, or whom the service refuses
 */
export async function openViewOf (options: SkillManagerOptions, { file, publicUrl }: { readonly file: string, readonly publicUrl?: string | undefined }, caller: string): Promise<CallersView> {
  const skills = new SkillManager(options)
  const policy = await readSetting('ACCESS_FILE or --access', readPolicy(file, publicUrl, skills))
  const groups = knownGroupsOf(policy, caller)
  const refusal = refusalOf(policy, caller)
  if (refusal !== undefined) throw new ConfigError(refusal)
  return { skills, service: skills.createView(caller, policy.grantsOf(policy.viewOf(groups))) }
}

/**
 * Lines that say what a caller sees and why, or who sees a skill.
 * @throws ConfigError also for a caller or a skill that there is not
 */
export async function reportAccess (config: Config, file: string, { caller, skill }: AccessQuestion, env: Environment): Promise<readonly string[]> {
  const { sources, ...roots } = await openRoots(config, { log: SILENT, env })
  const skills = new SkillManager({ ...roots, linkTargets: config.linkTargets, watcher: false })
  try {
    const policy = await readPolicy(file, config.publicUrl, skills)
    await sources?.sync()
    if (sources?.failure !== undefined) throw new ConfigError(sources.failure)
    await skills.start()
    await skills.available()
    const missing = skills.status.roots.flatMap(({ name, state }) => state === 'ok' ? [] : `the folder ${name} ${ROOT_PROBLEMS[state]}: none of its skills is known`)
    const unread = [...sources?.passedOver ?? [], ...missing]
    if (caller !== undefined) return [...unread, ...reportCaller(policy, skills, caller)]
    if (skill !== undefined) return [...unread, ...reportSkill(policy, skills, skill)]
    const warnings = [...policy.warnings, ...policy.unfitPatterns((root) => skills.skillsIn(root))]
    return [...unread, ...warnings, `${counted(policy.secretNames.length, 'token or link', 'tokens and links')}, ${counted(policy.rules.length, 'rule')}`]
  } finally {
    await skills.close()
    await sources?.close()
  }
}

async function readPolicy (file: string, publicUrl: string | undefined, { rootNames: roots }: SkillManager): Promise<Policy> {
  return Policy.parse(file, await readTextFile(file), { roots, resource: publicUrl === undefined ? undefined : `${publicUrl}/mcp` })
}

function reportCaller (policy: Policy, skills: SkillManager, caller: string): readonly string[] {
  const groups = knownGroupsOf(policy, caller)
  const refusal = refusalOf(policy, caller)
  if (refusal !== undefined) return [refusal]
  const own = new Set<string>()
  const width = (texts: readonly string[]) => texts.reduce((most, { length }) => Math.max(most, length), 0)
  const ofRoots = width(skills.rootNames)
  const ofNames = width(skills.rootNames.flatMap((root) => skills.skillsIn(root).filter((name) => ruleFor(policy.rules, groups, root, name) !== undefined)))
  const lines = skills.rootNames.flatMap((root) => skills.skillsIn(root).flatMap((name) => {
    const rule = ruleFor(policy.rules, groups, root, name)
    if (rule === undefined) return []
    // Of several folders the first wins.
    const note = own.has(name) ? ' (hidden by the same name in an earlier folder)' : ''
    own.add(name)
    return [`${name.padEnd(ofNames)}  ${root.padEnd(ofRoots)}  ${rule.where} for ${rule.groups.filter((group) => groups.includes(group)).join(', ')}${note}`]
  }))
  return [`${caller} is in ${groups.length === 0 ? 'no group' : `the groups ${groups.join(', ')}`} and sees ${counted(own.size, 'skill')}`, ...lines]
}

function reportSkill (policy: Policy, skills: SkillManager, skill: string): readonly string[] {
  const folders = skills.rootNames.filter((root) => skills.skillsIn(root).includes(skill))
  if (folders.length === 0) throw new ConfigError(`no folder has a skill ${quote(skill)}${didYouMean(skill, skills.rootNames.flatMap((root) => skills.skillsIn(root)))}`)
  const callers = [ANONYMOUS, ...policy.secretNames]
  return folders.flatMap((root) => {
    const rules = policy.rules.filter((rule) => rule.admits(root, skill))
    const names = callers.filter((name) => refusalOf(policy, name) === undefined && ruleFor(policy.rules, groupsOf(policy, name) ?? [], root, skill) !== undefined)
    return [
      `${skill} in ${root}: ${rules.length === 0 ? 'no rule grants it' : `seen by the groups ${[...new Set(rules.flatMap(({ groups }) => groups))].join(', ')}`}`,
      ...names.map((name) => `  ${name}`)
    ]
  })
}

function ruleFor (rules: readonly Rule[], groups: readonly string[], root: string, name: string): Rule | undefined {
  return rules.find((rule) => rule.groups.some((group) => groups.includes(group)) && rule.admits(root, name))
}

/** @throws ConfigError for a caller who is unknown */
function knownGroupsOf (policy: Policy, caller: string): readonly string[] {
  const groups = groupsOf(policy, caller)
  if (groups === undefined) throw new ConfigError(`${quote(caller)} is no token or link of the access file${didYouMean(caller, policy.secretNames)}`)
  return groups
}

function groupsOf (policy: Policy, caller: string): readonly string[] | undefined {
  if (caller.startsWith(GROUP_PREFIX)) {
    return policy.groupsOf([caller.slice(GROUP_PREFIX.length)])
  }
  // Callers without credentials may be nobody.
  return principalOf(policy, caller)?.groups ?? (caller === ANONYMOUS ? [] : undefined)
}

/** Why the service refuses a caller, whatever the rules grant to its groups. Members of a group may have any scope. */
function refusalOf (policy: Policy, caller: string): string | undefined {
  const { scopes, expiresAt = Infinity } = principalOf(policy, caller) ?? {}
  if (expiresAt <= Date.now()) return `${caller} expired at ${new Date(expiresAt).toISOString().replace('.000', '')}: it sees no skills`
  if (scopes === undefined || scopes.has(READ_SCOPE)) return undefined
  return `${caller} has the scopes ${[...scopes].join(', ') || '(none)'} and lacks ${READ_SCOPE}: it sees no skills`
}

/** Undefined for a group, and for anonymous callers where they are nobody. */
function principalOf (policy: Policy, caller: string): Principal | undefined {
  if (caller.startsWith(GROUP_PREFIX)) return undefined
  const proof = caller === ANONYMOUS ? { kind: caller } as const : policy.proofOf(caller)
  return proof && policy.principalOf(proof)
}
