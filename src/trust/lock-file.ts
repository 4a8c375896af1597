import { stat } from 'node:fs/promises'
import { Type } from '@sinclair/typebox'
import { parseYamlFile } from '../operator/yaml-file.ts'
import { ConfigError } from '../operator/setting.ts'
import { compareCodePoints } from '../core/shared/text.ts'

/** The revisions of each skill that may be served, by the skill's name. */
export type Lock = ReadonlyMap<string, ReadonlySet<string>>

const TITLE = '# Reviewed revisions of skills.'
const HEAD = TITLE + ' `skillserve lock` writes this file, ' +
  '`skillserve --locked` serves nothing else.\n'

const title = 'a revision (sha256: and 64 hexadecimal digits), or a list of them'

const RevisionSchema = Type.String({ pattern: '^sha256:[0-9a-f]{64}$', title })

const LockSchema = Type.Record(Type.String(), Type.Union([
  RevisionSchema, Type.Array(RevisionSchema, { minItems: 1, title })
], { title }))

/** @throws ConfigError for a folder: `--locked DIR` is a mistake for `DIR --locked` */
export async function checkLockFile (path: string, setting: string): Promise<void> {
  if ((await stat(path).catch(() => undefined))?.isDirectory() !== true) return
  throw new ConfigError(`${setting} takes a file, and ${path} is a folder: write folders before the flag`)
}

/** Whether a text begins like those of `formatLock`. */
export function isLockText (text: string): boolean {
  return text.startsWith(TITLE)
}

/** @throws ConfigError of one line, with the file and the line */
export function parseLock (path: string, text: string): Lock {
  const { value } = parseYamlFile(path, text, LockSchema)
  return new Map(Object.entries(value).map(([name, revisions]) => [name, new Set([revisions].flat())]))
}

/** Formats a lock. Equal locks give equal texts. */
export function formatLock (lock: Lock): string {
  const lines = [...lock].sort(([a], [b]) => compareCodePoints(a, b)).map(([name, revisions]) => {
    const [revision, ...others] = [...revisions].sort()
    return `${JSON.stringify(name)}: ${others.length === 0 ? revision : JSON.stringify([revision, ...others])}\n`
  })
  return HEAD + (lines.length === 0 ? '{}\n' : lines.join(''))
}
