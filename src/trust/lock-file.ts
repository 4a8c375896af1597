import { Type } from '@sinclair/typebox'
import { parseYamlFile } from '../config/files/yaml-file.ts'
import { compareCodePoints } from '../core/shared/text.ts'

/** The revisions of each skill that may be served, by the skill's name. */
export type Lock = ReadonlyMap<string, ReadonlySet<string>>

const HEAD = '# Reviewed revisions of skills. `skillserve lock` writes this file, ' +
  '`skillserve --locked` serves nothing else.\n'

const title = 'a revision (sha256: and 64 hexadecimal digits), a list of them, or a mapping with `revision`'

const RevisionSchema = Type.String({ pattern: '^sha256:[0-9a-f]{64}$', title })

const RevisionsSchema = Type.Union([RevisionSchema, Type.Array(RevisionSchema, { minItems: 1, title })], { title })

/** A reviewer's notes may stand next to the revision: they are not read. */
const LockSchema = Type.Record(Type.String(), Type.Union([
  RevisionsSchema,
  Type.Object({ revision: RevisionsSchema }, { title })
], { title }), {
  $id: 'https://skillserve.dev/schemas/skills.lock.json',
  title: 'a mapping of names of skills to revisions'
})

/** @throws ConfigError of one line, with the file and the line */
export function parseLock (path: string, text: string): Lock {
  const { value } = parseYamlFile(path, text, LockSchema)
  return new Map(Object.entries(value).map(([name, entry]) => {
    const revisions = typeof entry === 'string' || Array.isArray(entry) ? entry : entry.revision
    return [name, new Set(typeof revisions === 'string' ? [revisions] : revisions)]
  }))
}

/** The same skills in the same revisions give the same text. */
export function formatLock (lock: Lock): string {
  const lines = [...lock].sort(([a], [b]) => compareCodePoints(a, b)).map(([name, revisions]) => {
    const [revision, ...others] = [...revisions].sort()
    return `${JSON.stringify(name)}: ${others.length === 0 ? revision : JSON.stringify([revision, ...others])}\n`
  })
  return HEAD + (lines.length === 0 ? '{}\n' : lines.join(''))
}
