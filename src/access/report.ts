import { readTextFile } from '../config/files/yaml-file.ts'
import { openRoots } from '../config/roots.ts'
import { ConfigError, didYouMean, type Environment, quote } from '../config/setting.ts'
import type { Config } from '../config/settings.ts'
import { ROOT_PROBLEMS } from '../core/roots/root.ts'
import { SILENT } from '../core/shared/log.ts'
import { counted } from '../core/shared/text.ts'
import { SkillManager, type SkillManagerOptions } from '../core/skill-manager.ts'
import type { View } from '../core/view.ts'
import type { Principal } from '../http/callers.ts'
import { ANONYMOUS, GROUP_PREFIX, Policy, READ_SCOPE } from './policy.ts'

/** Neither: the file is only checked. */
interface AccessQuestion {
  /** Name of a token or link, `anonymous`, or `group:G`. */
  readonly caller?: string
  readonly skill?: string
}

/** A caller as an operator names it. */
interface NamedCaller {
  readonly groups: readonly string[]
  /** Why the service refuses it, whatever rules grant to its groups. */
  readonly refusal?: string | undefined
}

/**
 * The skills that one caller sees, for a command that serves nobody else.
 * @param name of a token or link, `anonymous`, or `group:G`
 * @throws ConfigError also for a caller who is unknown, or whom the service refuses
 */
export async function openViewOf (
  options: SkillManagerOptions, file: string, publicUrl: string | undefined, name: string
): Promise<{ readonly skills: SkillManager, readonly service: View }> {
  const skills = new SkillManager(options)
  const policy = await readPolicy(file, publicUrl, skills, 'ACCESS_FILE or --access')
  const { groups, refusal } = findCaller(policy, name)
  if (refusal !== undefined) throw new ConfigError(refusal)
  return { skills, service: skills.createView(name, policy.grantsOf(policy.viewOf(groups))) }
}

/**
 * Lines that say what a caller sees and why, or who sees a skill.
 * @throws ConfigError also for a caller or a skill that there is not
 */
export async function reportAccess (
  config: Config, file: string, { caller, skill }: AccessQuestion, env: Environment
): Promise<readonly string[]> {
  const { sources, ...roots } = await openRoots(config, { log: SILENT, env })
  const skills = new SkillManager({ ...roots, linkTargets: config.linkTargets, watcher: false })
  try {
    const policy = await readPolicy(file, config.publicUrl, skills)
    await sources?.sync()
    if (sources?.failure !== undefined) throw new ConfigError(sources.failure)
    await skills.start()
    await skills.available()
    const missing = skills.status.roots.flatMap(({ name, state }) =>
      state === 'ok' ? [] : `the folder ${name} ${ROOT_PROBLEMS[state]}: none of its skills is known`)
    const unread = [...sources?.passedOver ?? [], ...missing]
    if (caller !== undefined) return [...unread, ...reportCaller(policy, skills, caller)]
    if (skill !== undefined) return [...unread, ...reportSkill(policy, skills, skill)]
    const warnings = [...policy.warnings, ...policy.unfitPatterns((root) => skills.skillsIn(root))]
    const secrets = counted(policy.holders.length, 'token or link', 'tokens and links')
    return [...unread, ...warnings, `${secrets}, ${counted(policy.rules.length, 'rule')}`]
  } finally {
    await skills.close()
    await sources?.close()
  }
}

async function readPolicy (
  file: string, publicUrl: string | undefined, { rootNames: roots }: SkillManager, setting?: string
): Promise<Policy> {
  return Policy.parse(file, await readTextFile(file, setting), { roots, publicUrl })
}

function reportCaller (policy: Policy, skills: SkillManager, caller: string): readonly string[] {
  const { groups, refusal } = findCaller(policy, caller)
  if (refusal !== undefined) return [refusal]
  const seen = new Set<string>()
  const rules = policy.rules.filter((rule) => rule.groups.some((group) => groups.includes(group)))
  const found = skills.rootNames.flatMap((root) => skills.skillsIn(root).flatMap((name) => {
    const rule = rules.find((each) => each.admits(root, name))
    if (rule === undefined) return []
    // Of several folders the first wins.
    const note = seen.has(name) ? ' (hidden by the same name in an earlier folder)' : ''
    seen.add(name)
    const reason = `${rule.where} for ${rule.groups.filter((group) => groups.includes(group)).join(', ')}${note}`
    return [{ name, root, reason }]
  }))
  const widthOf = (texts: readonly string[]): number => texts.reduce((most, { length }) => Math.max(most, length), 0)
  const [ofNames, ofRoots] = [widthOf(found.map(({ name }) => name)), widthOf(skills.rootNames)]
  const where = groups.length === 0 ? 'no group' : `the groups ${groups.join(', ')}`
  return [
    `${caller} is in ${where} and sees ${counted(seen.size, 'skill')}`,
    ...found.map(({ name, root, reason }) => `${name.padEnd(ofNames)}  ${root.padEnd(ofRoots)}  ${reason}`)
  ]
}

function reportSkill (policy: Policy, skills: SkillManager, skill: string): readonly string[] {
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

/** @throws ConfigError for a caller who is unknown */
function findCaller (policy: Policy, name: string): NamedCaller {
  // Members of a group may have any scope.
  if (name.startsWith(GROUP_PREFIX)) return { groups: policy.groupsOf([name.slice(GROUP_PREFIX.length)]) }
  const principal = name === ANONYMOUS ? policy.anonymous : policy.holders.find((holder) => holder.name === name)
  if (principal !== undefined) return { groups: principal.groups, refusal: refusalOf(principal) }
  if (name === ANONYMOUS) return { groups: [] }
  const near = didYouMean(name, policy.holders.map(({ name }) => name))
  throw new ConfigError(`${quote(name)} is not a token or link of the access file${near}`)
}

function refusalOf ({ name, scopes, expiresAt = Infinity }: Principal): string | undefined {
  if (expiresAt <= Date.now()) {
    return `${name} expired at ${new Date(expiresAt).toISOString().replace('.000', '')}: it sees no skills`
  }
  if (scopes.has(READ_SCOPE)) return undefined
  return `${name} has the scopes ${[...scopes].join(', ') || '(none)'} and lacks ${READ_SCOPE}: it sees no skills`
}
