import type { Test } from 'tap'
import type { Observer } from '../../src/http/observer.ts'
import { peerOf } from '../../src/http/request/client-address.ts'
import { Audit, type AuditOptions } from '../../src/observe/audit/audit.ts'
import { buildService, type Files, type ServiceOptions } from './build.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo with CANARY-CONTENT\n', 'a.txt': 'text' } }

export interface AuditLine {
  readonly event: string
  readonly outcome: string
  readonly door: string
  readonly principal: object
  readonly target: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

/** A service whose audit log is at hand, and required. */
export async function buildAudited (t: Test, { files = FILES, salt, observe = [], ...options }: { readonly files?: Files, readonly salt?: AuditOptions['salt'], readonly observe?: readonly Observer[] } & Pick<ServiceOptions, 'admitCall' | 'linkTargets' | 'plug' | 'siblings'> = {}) {
  let text = ''
  let isWorking = true
  const audit = new Audit({ output: { write: (line) => { text += line } }, clientOf: peerOf, isRequired: true, isWorking: () => isWorking, version: '1', salt })
  const service = await buildService(t, { files, options: { ...options, auditState: () => audit.state, observe: () => [audit.observer, ...observe], plug: (skills) => [audit.plugin, ...options.plug?.(skills) ?? []] } })
  const lines = () => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as AuditLine)
  return {
    ...service,
    audit,
    text: () => text,
    break: () => { isWorking = false },
    /** The next lines, once there are so many of them; fails by the test's time limit. */
    next: async (count: number) => {
      while (lines().length < count) await new Promise((resolve) => setTimeout(resolve, 5))
      const found = lines()
      text = ''
      return found
    }
  }
}

/** Longer ago than the steps of timestamps. */
export async function settle (): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 60))
}
