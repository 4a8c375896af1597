import { dirname, relative, resolve, sep } from 'node:path'
import { Type } from '@sinclair/typebox'
import { replaceFile } from '../config/files/files.ts'
import { readYamlFile } from '../config/files/yaml-file.ts'
import { compareCodePoints } from '../core/shared/text.ts'

const BaselineSchema = Type.Record(
  Type.String(), Type.Array(Type.String(), { title: 'a list of codes' }), { title: 'an object of paths' }
)

/** Findings that a repository has accepted: codes by the absolute path of the skill. */
export type Baseline = Map<string, ReadonlySet<string>>

/**
 * @param file absolute; its paths begin at its folder
 * @throws ConfigError for a file that is not there, or has another shape
 */
export async function readBaseline (file: string): Promise<Baseline> {
  const { value } = await readYamlFile(file, BaselineSchema, '--baseline')
  return new Map(Object.entries(value).map(([path, codes]) => [resolve(dirname(file), path), new Set(codes)]))
}

/** Sorted, so that a change of it is easy to read. */
export async function writeBaseline (file: string, baseline: Baseline): Promise<void> {
  const entries = Array.from(baseline, ([path, codes]) =>
    [relative(dirname(file), path).split(sep).join('/') || '.', [...codes].sort(compareCodePoints)] as const)
  const sorted = Object.fromEntries(entries.sort(([a], [b]) => compareCodePoints(a, b)))
  await replaceFile(file, `${JSON.stringify(sorted, null, 2)}\n`, `--baseline: ${file}`)
}
