import type { Access } from './access/access.ts'
import type { OpenedRoots } from './config/roots.ts'
import type { Config } from './config/settings.ts'
import type { CoreLog } from './core/shared/log.ts'
import type { SkillManager } from './core/skill-manager.ts'
import type { Prepared } from './operator/prepared.ts'
import { ConfigError } from './operator/setting.ts'
import type { PreparedSources } from './sources/sources.ts'
import type { Trust } from './trust/trust.ts'

interface ReloadedParts {
  readonly config: Pick<Config, 'configFile' | 'auditLog'>
  readonly roots: OpenedRoots
  readonly skills: SkillManager
  readonly access: Access | undefined
  readonly trust: Trust | undefined
  readonly observation: { reopen (): Promise<boolean> }
  readonly log: CoreLog
}

interface Next {
  /** Prepared access file, lock and trust file. */
  readonly policies: readonly Prepared[]
  /** Absent without a configuration file. */
  readonly roots: PreparedSources | undefined
}

/**
 * Reloads the operator's files at SIGHUP: prepares everything, commits it in one step, and closes the parts that were
 * replaced. If preparing fails, nothing changes.
 */
export class Reload {
  readonly #parts: ReloadedParts
  #hasFailed = false

  constructor (parts: ReloadedParts) {
    this.#parts = parts
  }

  /** The problem that /readyz shows after a failed reload. Only the log has the reason, since it may quote a file. */
  get problem (): string | undefined {
    return this.#hasFailed
      ? 'the last reload failed, so the configuration before it stays in force; the log says why'
      : undefined
  }

  async run (): Promise<void> {
    const { log, roots: { sources } } = this.#parts
    const next = await this.#prepare().catch((error: unknown) => {
      const reason = error instanceof ConfigError ? { problem: error.message } : { err: error }
      log.warn(reason, 'SIGHUP: reload failed; the configuration before it stays in force')
    })
    this.#hasFailed = next === undefined
    try {
      if (next !== undefined) {
        await this.#commit(next)
        log.info({ ...next.roots && { roots: next.roots.roots.map(({ name }) => name) } }, 'SIGHUP: done')
      }
    } catch (err) {
      log.warn({ err }, 'SIGHUP: unexpected error after the new configuration was put in force')
    }
    // Also after a failure: the operator may have fixed what a source needs.
    sources.checkSoon()
  }

  /** Reads, checks and opens everything. It changes nothing, but opens the audit log again, at the same path. */
  async #prepare (): Promise<Next> {
    const { config: { configFile, auditLog }, roots: present, access, trust, observation } = this.#parts
    if (auditLog !== undefined && !await observation.reopen()) {
      throw new ConfigError(`AUDIT_LOG: ${auditLog} cannot be opened; it is tried again each second`)
    }
    const roots = configFile === undefined ? undefined : await present.prepare()
    try {
      const names = (roots ?? present.sources).roots.map(({ name }) => name)
      return { roots, policies: [...await trust?.prepare(names) ?? [], await access?.prepare(names) ?? []].flat() }
    } catch (error) {
      await roots?.discard()
      throw error
    }
  }

  /** Commits policies before roots, so that no skill of a new root is served before its rules apply. */
  async #commit ({ policies, roots }: Next): Promise<void> {
    const { skills, trust } = this.#parts
    const guarded = roots && trust?.guard(roots.roots)
    for (const policy of policies) policy.commit()
    if (roots === undefined) return
    roots.commit()
    await trust?.check()
    await skills.setRoots(guarded ?? roots.roots)
    await trust?.retire()
    await roots.retire()
  }
}
