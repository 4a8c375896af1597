import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SkillState } from '../core/revisions/state.ts'
import { foldersAbove } from '../core/shared/paths.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { Manifest } from '../core/shared/skill.ts'

/** One state of a skill, for a policy. */
export interface TrustSubject {
  readonly manifest: Manifest
  /** Whether a file of the skill, or one that was left out of the manifest, is a symbolic link. */
  hasLinks (): Promise<boolean>
  /** Bytes of a file of the manifest. Rejects when the file has other bytes by now. */
  read (path: string): Promise<Buffer>
}

const LINKS: ReadonlySet<string> = new Set<FindingCode>(['link_outside', 'link_to_folder'])

export async function subjectOf (state: Pick<SkillState, 'skill' | 'manifest' | 'fileFindings' | 'file'>): Promise<TrustSubject> {
  const manifest = await state.manifest()
  return {
    manifest,
    read: async (path) => (await state.file(path)).bytes,
    async hasLinks () {
      if ((await state.fileFindings()).some(({ code }) => LINKS.has(code))) return true
      const paths = new Set(manifest.files.flatMap(({ path }) => [path, ...foldersAbove(path)]))
      for (const path of paths) {
        const stats = await lstat(join(state.skill.metadata.skillPath, path)).catch(() => undefined)
        if (stats?.isSymbolicLink() === true) return true
      }
      return false
    }
  }
}
