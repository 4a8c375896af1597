import type { Admission } from '../../catalog/admission.ts'
import type { IndexedSkill } from '../../catalog/catalog.ts'
import type { Root } from '../../roots/root.ts'
import type { SkillFolder } from '../../roots/scan-root.ts'
import { pathBelow } from '../../disk/paths.ts'
import { changed, RefusedError } from '../../disk/refused.ts'
import type { FileStore } from '../../files/file-store.ts'
import { finding } from '../../format/findings.ts'
import { Signal } from '../../shared/signal.ts'
import { digestIn } from '../../shared/skill.ts'
import type { KeptRevision } from '../kept/kept-revisions.ts'
import type { ManifestStore, Snapshot } from '../manifest.ts'
import type { GateChange, TrustPolicy, Verdict } from './trust-policy.ts'

interface GateOptions {
  readonly policy: TrustPolicy
  readonly root: Root
  readonly store: FileStore
  readonly manifests: ManifestStore
}

/** What is watched of a skill that was checked or inspected. */
export interface CheckedFolders {
  readonly folder: SkillFolder
  /** Real paths of the folders below the skill's own. */
  readonly inside: readonly string[]
}

/**
 * Lets only those states of skills through that a policy serves. Consumers: the catalog, which lists no others, and `LiveState`,
 * which gives bytes of the checked manifest only. Cost per request: one comparison of all files of the skill with the disk.
 */
export class Gate implements Admission {
  readonly changed = new Signal<GateChange>()
  readonly checked = new Signal<CheckedFolders>()
  readonly #options: GateOptions
  #verdicts = new WeakMap<SkillFolder, Verdict>()

  constructor (options: GateOptions) {
    this.#options = options
  }

  get hiddenNames (): ReadonlySet<string> {
    return this.#options.policy.hiddenNames
  }

  guards (): boolean {
    const { policy, root } = this.#options
    return policy.guards(root.name)
  }

  async check (skill: IndexedSkill): Promise<'served' | 'refused' | 'changed'> {
    const { folder, mainFile, digest } = skill
    const { manifests, root, store } = this.#options
    if (skill.refused?.refusal === 'changed') return 'changed'
    try {
      const snapshot = await manifests.get(root.disk, skill, store.readCount, 'listed')
      if (mainFile !== undefined && digestIn(snapshot.manifest, mainFile.name) !== digest) return 'changed'
      const { isServed } = await this.judge(folder, snapshot)
      this.checked.emit({ folder, inside: snapshot.folders.map((path) => pathBelow(folder.realPath, path)) })
      return isServed ? 'served' : 'refused'
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      if (error.refusal === 'changed') return 'changed'
      this.refuse(folder, 'its files cannot all be read')
      return 'refused'
    }
  }

  /**
   * What the policy says of a state of a skill.
   * @throws {RefusedError} `changed` when the skill is not in that state any more
   */
  async judge (folder: SkillFolder, { manifest, hasLinks }: Snapshot): Promise<Verdict> {
    const { policy, root, store } = this.#options
    const verdict = await policy.judge({
      root: root.name,
      manifest,
      hasLinks,
      read: async (path, maxBytes) => {
        const { content } = await store.read({ disk: root.disk, folder: folder.realPath, path }, maxBytes, undefined, false)
        if (content.digest !== digestIn(manifest, path)) throw changed('a file changed while its skill was checked')
        return content.bytes
      }
    })
    this.#note(folder, verdict)
    return verdict
  }

  /** The same of a kept revision, whose bytes are all in memory. */
  async judgeKept ({ manifest, contents }: KeptRevision): Promise<Verdict> {
    const { policy, root } = this.#options
    return await policy.judge({
      root: root.name,
      manifest,
      hasLinks: false,
      read: async (path) => {
        const bytes = contents.get(digestIn(manifest, path) ?? '')
        if (bytes === undefined) throw changed('a file of a kept revision is not there')
        return bytes
      }
    })
  }

  /** Refuses a skill that cannot be checked. */
  refuse (folder: SkillFolder, reason: string): void {
    this.#note(folder, {
      isServed: false,
      report: { signed: false, signer: null, status: null, checked_revision: '', pinned: null },
      findings: [finding('trust_unchecked', `the skill could not be checked: ${reason}`, 'Make all files of the skill readable, and remove what agents do not need')]
    })
  }

  /** How many folders of the root are refused now. */
  get refusedCount (): number {
    if (!this.guards()) return 0
    let count = 0
    for (const folder of this.#options.root.folders.values()) if (this.#verdicts.get(folder)?.isServed === false) count++
    return count
  }

  #note (folder: SkillFolder, verdict: Verdict): void {
    const before = this.#verdicts.get(folder)
    this.#verdicts.set(folder, verdict)
    const isSame = (before?.isServed ?? true) === verdict.isServed && (verdict.isServed || before?.findings[0]?.message === verdict.findings[0]?.message)
    if (!isSame && this.guards()) this.changed.emit({ folder, root: this.#options.root.name, verdict })
  }
}
