import type { Test } from 'tap'
import type { Observer } from '../../src/http/observer.ts'
import type { LineOutput } from '../../src/log.ts'
import { type AuditOptions, createAudit } from '../../src/observe/audit.ts'
import { buildService, type Files, type ServiceOptions } from './build.ts'

const SKILL = '---\nname: demo\ndescription: A demo\n---\n# Demo with CANARY-CONTENT\n'
const FILES = { demo: { 'SKILL.md': SKILL, 'a.txt': 'text' } }

export interface AuditLine {
  readonly event: string
  readonly outcome: string
  readonly door: string
  readonly principal: object
  readonly target: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

interface AuditedOptions extends Pick<ServiceOptions, 'admitCall' | 'linkTargets' | 'plug' | 'siblings'> {
  readonly files?: Files
  readonly salt?: AuditOptions['salt']
  readonly observe?: readonly Observer[]
}

/** A service whose audit log is at hand, and required. */
export async function buildAudited (t: Test, { files = FILES, salt, observe = [], ...options }: AuditedOptions = {}) {
  let text = ''
  const stdout: LineOutput = {
    dropped: 0,
    problem: undefined,
    write: (line) => { text += line },
    flush () {},
    reopen () {}
  }
  const log = { info () {}, warn () {} }
  const audit = createAudit({ path: 'stdout', stdout, isRequired: true, version: '1', salt, log })
  const service = await buildService(t, {
    files,
    options: {
      ...options,
      auditState: audit.state,
      observe: () => [audit.observer, ...observe],
      plug: (skills) => [audit.plugin, ...options.plug?.(skills) ?? []]
    }
  })
  const lines = () => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as AuditLine)
  return {
    ...service,
    audit,
    text: () => text,
    /** The next lines, once there are so many of them; fails by the test's time limit. */
    next: async (count: number) => {
      while (lines().length < count) await new Promise((resolve) => setTimeout(resolve, 5))
      const found = lines()
      text = ''
      return found
    }
  }
}
