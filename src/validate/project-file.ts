import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { Type } from '@sinclair/typebox'
import { compareCodePoints } from '../core/shared/text.ts'
import { replaceFile } from '../operator/files.ts'
import { ConfigError, didYouMean } from '../operator/setting.ts'
import { readYamlFile } from '../operator/yaml-file.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { parseTargets, TARGET_WORDS, type TargetName } from '../verdicts/targets.ts'
import { FAIL_ON, type FailOn } from './report.ts'

/** The file with a project's choices. It is next to the skills and in none of them, so it is never served. */
const PROJECT_FILE = '.skillserve.yaml'

const ProjectSchema = Type.Object({
  targets: Type.Optional(Type.Array(Type.String(), { minItems: 1, title: 'a list of targets' })),
  fail_on: Type.Optional(StringEnum(FAIL_ON, { title: 'error, warning, info or never' })),
  max_warnings: Type.Optional(Type.Integer({ minimum: 0, title: 'a whole number from 0' })),
  baseline: Type.Optional(Type.String({ minLength: 1, title: 'a file' }))
}, { additionalProperties: false })

const BaselineSchema = Type.Record(
  Type.String(), Type.Array(Type.String(), { title: 'a list of codes' }), { title: 'an object of paths' }
)
const MISSING_BASELINE = 'does not exist yet: --write-baseline writes it'

/** Defaults for flags of `validate`. */
interface ProjectChoices {
  readonly targets?: readonly TargetName[] | undefined
  readonly failOn?: FailOn | undefined
  readonly maxWarnings?: number | undefined
  /** Absolute. */
  readonly baseline?: string | undefined
  /** The error for a baseline that does not exist. */
  readonly missingBaseline?: Error
}

/**
 * Reads the choices in the nearest `.skillserve.yaml`: next to the skills or, for skills inside the working folder, in
 * a folder above them up to that one.
 * @param path a folder of skills, a skill or a SKILL.md, there or not
 * @throws {ConfigError} `FILE:LINE: KEY …`
 */
export async function readProjectFile (path: string, cwd: string): Promise<ProjectChoices> {
  const file = findProjectFile(resolve(cwd, path), cwd)
  if (file === undefined) return {}
  const project = await readYamlFile(file, ProjectSchema)
  const { targets = [], fail_on: failOn, max_warnings: maxWarnings } = project.value
  for (const [index, target] of targets.entries()) {
    if (!('unknown' in parseTargets(target))) continue
    const sentence = `is not a target; allowed: ${TARGET_WORDS.join(', ')}${didYouMean(target, TARGET_WORDS)}`
    throw project.error(['targets', index], sentence)
  }
  const chosen = parseTargets(targets.join(','))
  const baseline = project.value.baseline && resolve(dirname(file), project.value.baseline)
  return {
    ...baseline !== undefined && !existsSync(baseline) && {
      missingBaseline: project.error(['baseline'], `${baseline} ${MISSING_BASELINE}`)
    },
    targets: 'unknown' in chosen ? undefined : chosen,
    failOn,
    maxWarnings,
    baseline
  }
}

function findProjectFile (path: string, cwd: string): string | undefined {
  const start = existsSync(path) && statSync(path).isDirectory() ? path : dirname(path)
  const isInside = !relative(cwd, start).split(sep).includes('..')
  // For a skill outside of the working folder: its own folder and the one above.
  const last = isInside ? resolve(cwd) : dirname(start)
  for (let folder = start; ; folder = dirname(folder)) {
    const file = join(folder, PROJECT_FILE)
    if (existsSync(file)) return file
    if (folder === last || folder === dirname(folder)) return undefined
  }
}

/** Findings that a repository has accepted: codes by the absolute path of the skill. */
export type Baseline = Map<string, ReadonlySet<string>>

/**
 * Reads a baseline.
 * @param file absolute; its paths begin at its folder
 * @throws {ConfigError} for a file that is not there, or has another shape
 */
export async function readBaseline (file: string): Promise<Baseline> {
  if (!existsSync(file)) throw new ConfigError(`--baseline: ${file} ${MISSING_BASELINE}`)
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
