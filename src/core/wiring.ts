import { CatalogLog } from './catalog-log.ts'
import { LiveCatalog } from './catalog/live-catalog.ts'
import { KeptRevisions } from './content/kept-revisions.ts'
import { ManifestStore } from './content/manifest.ts'
import { SkillFiles } from './content/skill-files.ts'
import { Gate } from './content/trust/gate.ts'
import type { DiskArea } from './disk/network/guard.ts'
import { KEPT_REVISION_BYTES, KEPT_REVISION_MS } from './ground/limits.ts'
import { SILENT } from './ground/log.ts'
import { Signal } from './ground/signal.ts'
import { Refresher } from './refresher.ts'
import { Roots } from './roots/roots.ts'
import { SkillSearch } from './search/search.ts'
import { createSharedDisk } from './shared-disk.ts'
import type { SkillManagerOptions } from './skill-manager-options.ts'

/** The parts of a skill manager. */
export type Core = ReturnType<typeof wireCore>

/** Makes the parts in one order, disk → roots → catalog → files → search → refresher. Each is handed the parts before it. */
export function wireCore ({ projectRoots, personalRoot, linkTargets, polling = false, log = SILENT, watcher, disk, times = {}, keep = {}, hasRoom, shared = createSharedDisk(times.diskAnswer, hasRoom), policy }: SkillManagerOptions) {
  const { phase, guard, store } = shared
  const roots = new Roots({
    projectRoots, ...personalRoot !== undefined && { personalRoot }, ...linkTargets && { linkTargets }, ...disk && { disk }, guard, phase
  })
  // Other managers may use the same guard.
  const disks = new Signal<DiskArea & { readonly isAnswering: boolean }>()
  const stops = [guard.changed.subscribe((area) => { if (roots.indexOf(area.root) !== -1) disks.emit(area) })]
  const kept = new KeptRevisions({ keepMs: KEPT_REVISION_MS, maxBytes: KEPT_REVISION_BYTES, ...keep })
  const manifests = new ManifestStore({ store, kept })
  const gate = policy && new Gate({ policy, roots, store, manifests })
  const catalog = new LiveCatalog({ roots, store, phase, admission: gate })
  const catalogLog = new CatalogLog({ log, roots, catalog, disks, gate: gate?.changed })
  const files = new SkillFiles({ roots, catalog, store, kept, manifests, gate })
  const search = new SkillSearch({
    list: () => files.list(),
    findNow: (name) => catalog.last.get(name),
    find: (name) => files.find(name),
    readMainFile: (name, preference) => files.readMainFile(name, preference),
    subscribe: (listener) => catalog.changed.subscribe(listener)
  })
  const refresher = new Refresher({ roots: roots.paths, polling, ...watcher !== undefined && { watcher }, times, log, index: catalog })
  if (gate !== undefined && policy !== undefined) {
    // A change of any file decides whether a guarded skill is served.
    refresher.wantInside(true)
    stops.push(
      gate.changed.subscribe((change) => { policy.judged.emit(change) }),
      gate.checked.subscribe(({ folder, inside }) => { refresher.followInside(roots.pathOf(folder), folder.realPath, inside) })
    )
  }
  // What could not be read while a disk hung; for a root, all that is in it.
  disks.subscribe(({ name, isAnswering }) => { if (isAnswering) refresher.hintAt(name === '' ? catalog.last.names : [name]) })
  roots.changed.subscribe(({ root, realPath, folders, links, names }) => {
    refresher.hintAt(names)
    refresher.follow(root.path, { realPath, folders: root.listed?.isFixed === true ? new Map() : folders, links })
  })
  for (const [index, listing] of roots.listings) stops.push(listing.changed.subscribe(() => { void roots.rescan(index) }))
  return {
    phase,
    guard,
    store,
    roots,
    gate,
    catalog,
    files,
    search,
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
