import { CatalogLog } from './catalog-log.ts'
import { LiveCatalog } from './catalog/live-catalog.ts'
import { KeptRevisions } from './content/kept/kept-revisions.ts'
import { ManifestStore } from './content/manifest.ts'
import { SkillFiles } from './content/skill-files.ts'
import type { DiskAreaChange } from './disk/network/guard.ts'
import { SILENT } from './shared/log.ts'
import { Signal } from './shared/signal.ts'
import type { SkillType } from './shared/skill.ts'
import { Refresher } from './refresher.ts'
import { Root, type RootOptions } from './roots/root.ts'
import type { SharedParts } from './shared-parts.ts'
import type { SkillManagerOptions } from './skill-manager-options.ts'

/** What the skills of one root are made with. */
export interface RootSkillsOptions extends Omit<SkillManagerOptions, 'projectRoots' | 'personalRoot' | 'guard' | 'keep' | 'hasRoom'> {
  readonly root: string | RootOptions
  readonly type: SkillType
  readonly shared: SharedParts
}

/** The parts behind the skills of one root. */
export type Core = ReturnType<typeof wireCore>

/** Makes the parts in one order, disk → root → catalog → files → refresher. Each is handed the parts before it. */
export function wireCore ({ root: options, type, linkTargets, polling = false, log = SILENT, onSkipped, watcher, disk, times = {}, shared }: RootSkillsOptions) {
  const { phase, guard, store } = shared
  const root = new Root(options, { type, linkTargets, disk, guard, phase })
  // The guard is shared with the other roots.
  const disks = new Signal<DiskAreaChange>()
  const stops = [guard.changed.subscribe((area) => { if (area.root === root.path) disks.emit(area) })]
  const kept = new KeptRevisions(shared.revisions)
  const manifests = new ManifestStore({ store, kept })
  const catalog = new LiveCatalog({ root, store, phase })
  const catalogLog = new CatalogLog({ log, root, catalog, disks })
  if (onSkipped !== undefined) root.skipped.subscribe(onSkipped)
  const files = new SkillFiles({ root, catalog, store, kept, manifests })
  const refresher = new Refresher({ root: root.path, polling, watcher, times, log, index: catalog })
  files.inspected.subscribe(({ folder, inside }) => { refresher.followInside(folder.realPath, inside) })
  // Reads again what could not be read while the disk hung: one skill, or the whole root.
  disks.subscribe(({ name, isAnswering }) => { if (isAnswering) refresher.hintAt(name === '' ? catalog.last.names : root.namesIn(name)) })
  root.changed.subscribe(({ realPath, links, names }) => {
    refresher.hintAt(names)
    refresher.follow({ realPath, folders: root.listed?.isFixed === true ? new Map() : root.folders, links })
  })
  if (root.listing !== undefined) stops.push(root.listing.changed.subscribe(() => { void root.rescan() }))
  return {
    root,
    guard,
    catalog,
    manifests,
    catalogLog,
    files,
    refresher,
    async close (): Promise<void> {
      for (const stop of stops) stop()
      catalog.changed.clear()
      catalog.touched.clear()
      catalogLog.close()
      await refresher.close()
      files.close()
    }
  }
}
