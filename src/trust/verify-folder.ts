import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { SkillState } from '../core/revisions/state.ts'
import type { FindingCode } from '../core/format/findings.ts'
import { listedMainFile } from '../core/format/main-files.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { TrustReport } from '../core/shared/origin.ts'
import type { Finding, Manifest } from '../core/shared/skill.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../core/skill-manager.ts'
import { whyUnreadable } from '../config/files/files.ts'
import { quote } from '../config/setting.ts'
import type { Policy } from './policy.ts'
import { subjectOf } from './subject.ts'

/** What a policy says of a skill in a folder. */
export interface VerifiedSkill {
  readonly name: string
  /** Undefined for a skill that could not be read: `problem` says why. */
  readonly report: TrustReport | undefined
  readonly isServed: boolean
  readonly findings: readonly Finding[]
  /** One sentence without a full stop; empty for a skill without findings. */
  readonly problem: string
}

/** Findings about files that a revision leaves out because this process cannot read them, though another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>([
  'file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'
])

/** A folder cannot be verified: it is not there, or may not be read. */
export class FolderError extends Error {}

/** How a folder is listed: which links lead somewhere, and who learns what is left out. */
export type ListOptions = { readonly [Name in 'linkTargets' | 'onSkipped']?: SkillManagerOptions[Name] | undefined } & {
  /** Receives how many skills were read, and of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/**
 * What a policy says of all skills of a folder, or of the one that the folder is.
 * @throws FolderError
 */
export async function verifyFolder (path: string, policy: Policy, list: ListOptions = {}): Promise<readonly VerifiedSkill[]> {
  return await withSkills(path, list, (skills, names) => verifySkills(skills, names, policy, basename(path), list))
}

/** What a policy says of all skills of a root. */
export async function verifyRoot (root: RootOptions, policy: Policy, list: ListOptions = {}): Promise<readonly VerifiedSkill[]> {
  const name = root.name ?? basename(root.path)
  return await readRoot(root, list, async (skills) => await verifySkills(skills, await skills.list(), policy, name, list))
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
      all.push(await skills.read(name, async (state) => {
        const subject = await subjectOf(state)
        const [hasLinks, unread] = [await subject.hasLinks(), await unreadPart(state)]
        return { folder: `${parent}/${name}`, manifest: subject.manifest, hasLinks, unread }
      }))
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

async function withSkills<T> (
  path: string, options: ListOptions, use: (skills: SkillManager, names: readonly string[], parent: string) => Promise<T>
): Promise<T> {
  const isSkill = await holdsMainFile(path)
  const parent = isSkill ? dirname(path) : path
  // What lies next to a single skill is nobody's question.
  const list = isSkill ? { ...options, onSkipped: undefined } : options
  return await readRoot({ path: parent, name: basename(path) }, list, async (skills) => {
    const names = await skills.list()
    if (isSkill && !names.includes(basename(path))) {
      const isLink = (await lstat(path)).isSymbolicLink()
      throw new FolderError(`${path} ${isLink ? 'is a link out of its folder' : 'has a name that no skill can have'}`)
    }
    if (names.length === 0) throw new FolderError(`${path} has no skills`)
    return await use(skills, isSkill ? [basename(path)] : names, parent)
  })
}

/** What is made of the skills of a root, read once. */
export async function readRoot<T> (root: RootOptions, { linkTargets, onSkipped }: ListOptions, use: (skills: SkillManager) => Promise<T>): Promise<T> {
  const skills = createSkillManager({ projectRoots: [root], watcher: false, keep: { keepMs: 0 }, linkTargets, onSkipped })
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

async function verifySkills (
  skills: SkillManager, names: readonly string[], policy: Policy, root: string, { onProgress }: ListOptions
): Promise<readonly VerifiedSkill[]> {
  const verified: VerifiedSkill[] = []
  for (const name of names) {
    onProgress?.(verified.length, names.length)
    verified.push(await verifySkill(skills, name, policy, root))
  }
  return verified
}

async function verifySkill (skills: SkillManager, name: string, policy: Policy, root: string): Promise<VerifiedSkill> {
  try {
    return await skills.read(name, async (state) => {
      const { report, isServed, findings } = await policy.judge(root, await subjectOf(state))
      return { name, report, isServed, findings, problem: findings.map(({ message }) => message).join('; ') }
    })
  } catch (error) {
    if (!(error instanceof SkillError)) throw error
    return { name, report: undefined, isServed: false, findings: [], problem: error.message }
  }
}
