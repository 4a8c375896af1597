import { existsSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { Type } from '@sinclair/typebox'
import { compareCodePoints } from '../core/shared/text.ts'
import { replaceFile } from '../operator/files.ts'
import { ConfigError } from '../operator/setting.ts'
import { readYamlFile } from '../operator/yaml-file.ts'

const BaselineSchema = Type.Record(
  Type.String(), Type.Array(Type.String(), { title: 'a list of codes' }), { title: 'an object of paths' }
)

/** Findings that a repository has accepted: codes by the absolute path of the skill. */
export type Baseline = Map<string, ReadonlySet<string>>

/**
 * Reads a baseline.
 * @param file absolute; its paths begin at its folder
 * @throws {ConfigError} for a file that is not there, or has another shape
 */
export async function readBaseline (file: string): Promise<Baseline> {
  if (!existsSync(file)) throw new ConfigError(`--baseline: ${file} does not exist yet: --write-baseline writes it`)
  const { value } = await readYamlFile(file, BaselineSchema, '--baseline')
  return new Map(Object.entries(value).map(([path, codes]) => [resolve(dirname(file), path), new Set(codes)]))
}

/**
 * Writes a baseline, sorted so that a change of it is easy to read.
 * @throws {ConfigError} for a file that is there and is no baseline: it may be precious
 */
export async function writeBaseline (file: string, baseline: Baseline): Promise<void> {
  if (existsSync(file)) {
    await readBaseline(file).catch((error: Error) => {
      throw new ConfigError(`--write-baseline writes over baselines only: ${error.message}`)
    })
  }
  const entries = Array.from(baseline, ([path, codes]) =>
    [relative(dirname(file), path).split(sep).join('/') || '.', [...codes].sort(compareCodePoints)] as const)
  const sorted = Object.fromEntries(entries.sort(([a], [b]) => compareCodePoints(a, b)))
  await replaceFile(file, `${JSON.stringify(sorted, null, 2)}\n`, `--baseline: ${file}`)
}
