import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { TrustPolicy, Verdict } from '../core/content/trust/trust-policy.ts'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { FindingCode } from '../core/format/findings.ts'
import { listedMainFile } from '../core/format/main-files.ts'
import { SkillError } from '../core/shared/errors.ts'
import { Signal } from '../core/shared/signal.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../core/skill-manager.ts'
import { whyUnreadable } from '../config/files/files.ts'
import { quote } from '../config/setting.ts'

/** What a policy says of a skill in a folder. */
export interface VerifiedSkill {
  readonly name: string
  /** Undefined for a skill that could not be read: `problem` says why. */
  readonly verdict: Verdict | undefined
  readonly isServed: boolean
  /** One sentence without a full stop; empty for a skill without findings. */
  readonly problem: string
}

/** Findings about files that a revision leaves out because this process cannot read them, though another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>(['file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'])

/** A folder cannot be verified: it is not there, or may not be read. */
export class FolderError extends Error {}

/** How a folder is listed: which links lead somewhere, and who is told of what is left out. */
export type ListOptions = { readonly [Name in 'linkTargets' | 'onSkipped']?: SkillManagerOptions[Name] | undefined } & {
  /** Receives how many skills were read, and of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/**
 * What a policy says of all skills of a folder, or of the one that the folder is.
 * @throws FolderError
 */
export async function verifyFolder (path: string, policy: TrustPolicy, list: ListOptions = {}): Promise<readonly VerifiedSkill[]> {
  return await withSkills(path, { policy, ...list }, async (skills, names) => await verifySkills(skills, names, list))
}

/** What a policy says of all skills of a root. */
export async function verifyRoot (root: RootOptions, policy: TrustPolicy, list: ListOptions = {}): Promise<readonly VerifiedSkill[]> {
  return await readRoot(root, { policy, ...list }, async (skills) => await verifySkills(skills, await skills.list(), list))
}

/** A skill in a folder, by its manifest. */
export interface ReadSkill {
  /** Path of its own folder. */
  readonly folder: string
  readonly manifest: Manifest
  readonly hasLinks: boolean
  /** See `unreadPart`. */
  readonly unread: string | undefined
}

/** Reads the skills of a folder, or the one that the folder is. */
export async function readSkills (path: string, list: ListOptions): Promise<readonly ReadSkill[]> {
  return await withSkills(path, list, async (skills, names, parent) => {
    const all: ReadSkill[] = []
    for (const name of names) {
      list.onProgress?.(all.length, names.length)
      all.push(await skills.read(name, async (state) => ({
        folder: `${parent}/${name}`, manifest: await state.manifest(), hasLinks: await state.hasLinks(), unread: await unreadPart(state)
      })))
    }
    return all
  })
}

/** What the revision of a skill lacks, as a sentence without a full stop: nobody approves or signs what nobody could read. */
export async function unreadPart (state: Pick<SkillState, 'skill' | 'fileFindings'>): Promise<string | undefined> {
  const findings = [...state.skill.findings, ...await state.fileFindings()]
  const unread = findings.find(({ code }) => UNREAD.has(code))
  return unread?.code === 'file_unreadable' ? `${quote(unread.file ?? '')} may not be read` : unread?.message
}

/** How a root is read: a policy only says what it makes of the skills. */
export interface ReadOptions extends ListOptions {
  readonly policy?: TrustPolicy | undefined
}

async function withSkills<T> (path: string, options: ReadOptions, use: (skills: SkillManager, names: readonly string[], parent: string) => Promise<T>): Promise<T> {
  const isSkill = await holdsMainFile(path)
  const parent = isSkill ? dirname(path) : path
  // What lies beside a single skill is nobody's question.
  return await readRoot({ path: parent, name: basename(path) }, isSkill ? { ...options, onSkipped: undefined } : options, async (skills) => {
    const names = await skills.list()
    if (isSkill && !names.includes(basename(path))) throw new FolderError(`${path} ${(await lstat(path)).isSymbolicLink() ? 'is a link out of its folder' : 'has a name that no skill can have'}`)
    if (names.length === 0) throw new FolderError(`${path} has no skills`)
    return await use(skills, isSkill ? [basename(path)] : names, parent)
  })
}

/** What is made of the skills of a root, read once. */
export async function readRoot<T> (root: RootOptions, { policy, linkTargets, onSkipped }: ReadOptions, use: (skills: SkillManager) => Promise<T>): Promise<T> {
  const skills = createSkillManager({
    projectRoots: [root],
    watcher: false,
    keep: { keepMs: 0 },
    policy: policy && unobeyed(policy),
    linkTargets,
    onSkipped
  })
  try {
    await skills.start()
    return await use(skills)
  } catch (error) {
    if (error instanceof SkillError) throw new FolderError(error.message, { cause: error })
    throw error
  } finally {
    await skills.close()
  }
}

/**
 * Whether a folder is a skill.
 * @throws FolderError
 */
export async function holdsMainFile (path: string): Promise<boolean> {
  try {
    if (!(await stat(path)).isDirectory()) throw new FolderError(`${path} is no folder`)
    return listedMainFile(await readdir(path, { withFileTypes: true })) !== undefined
  } catch (error) {
    if (error instanceof FolderError) throw error
    throw new FolderError(`${path} cannot be read: ${whyUnreadable(error)}`, { cause: error })
  }
}

async function verifySkills (skills: SkillManager, names: readonly string[], { onProgress }: ListOptions): Promise<readonly VerifiedSkill[]> {
  const verified: VerifiedSkill[] = []
  for (const name of names) {
    onProgress?.(verified.length, names.length)
    verified.push(await verifySkill(skills, name))
  }
  return verified
}

async function verifySkill (skills: SkillManager, name: string): Promise<VerifiedSkill> {
  try {
    const verdict = await skills.read(name, (state) => state.trust())
    return { name, verdict, isServed: verdict?.isServed === true, problem: verdict?.findings.map(({ message }) => message).join('; ') ?? '' }
  } catch (error) {
    if (!(error instanceof SkillError)) throw error
    return { name, verdict: undefined, isServed: false, problem: error.message }
  }
}

/** The same policy without effect: its refusals are reported, and everything is served. */
function unobeyed (policy: TrustPolicy): TrustPolicy {
  return { hiddenNames: policy.hiddenNames, changed: new Signal(), judged: new Signal(), guards: () => false, judge: (subject) => policy.judge(subject) }
}
