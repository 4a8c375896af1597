import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { Type } from '@sinclair/typebox'
import { readYamlFile } from '../operator/yaml-file.ts'
import { didYouMean } from '../operator/setting.ts'
import { MISSING_BASELINE } from './baseline.ts'
import { FAIL_ON } from './report/reporter.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { parseTargets, TARGET_WORDS, type TargetName } from '../verdicts/targets.ts'

/** What a project has chosen once. It lies next to the skills and in none of them, so it is never served. */
const PROJECT_FILE = '.skillserve.yaml'

const ProjectSchema = Type.Object({
  targets: Type.Optional(Type.Array(Type.String(), { minItems: 1, title: 'a list of targets' })),
  fail_on: Type.Optional(StringEnum(FAIL_ON, { title: 'error, warning, info or never' })),
  max_warnings: Type.Optional(Type.Integer({ minimum: 0, title: 'a whole number from 0' })),
  baseline: Type.Optional(Type.String({ minLength: 1, title: 'a file' }))
}, { additionalProperties: false })

/** What the flags of `validate` say otherwise. */
interface ProjectChoices {
  readonly targets?: readonly TargetName[] | undefined
  readonly failOn?: typeof FAIL_ON[number] | undefined
  readonly maxWarnings?: number | undefined
  /** Absolute. */
  readonly baseline?: string | undefined
  /** Why that file cannot be read, if it is not there. */
  readonly missingBaseline?: Error
}

/**
 * The choices in the nearest `.skillserve.yaml`: next to the skills or, for skills inside the working folder, in a
 * folder above them up to that one.
 * @param path a folder of skills, a skill or a SKILL.md, there or not
 * @throws {ConfigError} `FILE:LINE: KEY …`
 */
export async function readProjectFile (path: string, cwd: string): Promise<ProjectChoices> {
  const file = findProjectFile(resolve(cwd, path), cwd)
  if (file === undefined) return {}
  const project = await readYamlFile(file, ProjectSchema)
  const { targets = [], fail_on: failOn, max_warnings: maxWarnings, baseline } = project.value
  for (const [index, target] of targets.entries()) {
    if (!('unknown' in parseTargets(target))) continue
    const sentence = `is not a target; allowed: ${TARGET_WORDS.join(', ')}${didYouMean(target, TARGET_WORDS)}`
    throw project.error(['targets', index], sentence)
  }
  const chosen = parseTargets(targets.join(','))
  const baselineFile = baseline === undefined ? undefined : resolve(dirname(file), baseline)
  return {
    ...baselineFile !== undefined && !existsSync(baselineFile) && {
      missingBaseline: project.error(['baseline'], `${baselineFile} ${MISSING_BASELINE}`)
    },
    targets: 'unknown' in chosen ? undefined : chosen,
    failOn,
    maxWarnings,
    baseline: baselineFile
  }
}

function findProjectFile (path: string, cwd: string): string | undefined {
  const start = existsSync(path) && statSync(path).isDirectory() ? path : dirname(path)
  const isInside = !relative(cwd, start).split(sep).includes('..')
  // Of a skill elsewhere, its own folder and the one that holds it.
  const last = isInside ? resolve(cwd) : dirname(start)
  for (let folder = start; ; folder = dirname(folder)) {
    const file = join(folder, PROJECT_FILE)
    if (existsSync(file)) return file
    if (folder === last || folder === dirname(folder)) return undefined
  }
}
