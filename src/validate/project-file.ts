import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { isFolder } from '../config/files/files.ts'
import { didYouMean } from '../config/setting.ts'
import { readYamlFile } from '../config/files/yaml-file.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { parseTargets, TARGET_NAMES, type TargetName } from '../verdicts/index.ts'

/** What a project has chosen once. It lies next to the skills and in none of them, so it is never served. */
const PROJECT_FILE = '.skillserve.yaml'

const ProjectSchema = Type.Object({
  targets: Type.Optional(Type.Array(Type.String(), { minItems: 1, title: 'a list of targets' })),
  fail_on: Type.Optional(StringEnum(['error', 'warning', 'info', 'never'], { title: 'error, warning, info or never' })),
  max_warnings: Type.Optional(Type.Integer({ minimum: 0, title: 'a whole number from 0' })),
  baseline: Type.Optional(Type.String({ minLength: 1 }))
}, { additionalProperties: false })

/** What the flags of `validate` say otherwise. */
export interface ProjectChoices {
  readonly targets?: readonly TargetName[]
  readonly failOn?: NonNullable<Static<typeof ProjectSchema>['fail_on']>
  readonly maxWarnings?: number
  /** Absolute. */
  readonly baseline?: string
}

/**
 * The choices in the nearest `.skillserve.yaml`: next to the skills or, for skills inside the working folder, in a
 * folder above them up to that one.
 * @param path a folder of skills, a skill or a SKILL.md, there or not
 * @throws {ConfigError} `FILE:LINE: KEY …`
 */
export async function readProjectFile (path: string, cwd: string): Promise<ProjectChoices> {
  const file = await findProjectFile(resolve(cwd, path), cwd)
  if (file === undefined) return {}
  const project = await readYamlFile(file, ProjectSchema)
  const { targets, fail_on: failOn, max_warnings: maxWarnings, baseline } = project.value
  const chosen = targets && parseTargets(targets.join(','))
  if (chosen !== undefined && 'unknown' in chosen) {
    const index = targets?.findIndex((each) => 'unknown' in parseTargets(each)) ?? 0
    throw project.error([
      'targets', index
    ], `is not a target; allowed: ${TARGET_NAMES.join(', ')}, all${didYouMean(chosen.unknown, TARGET_NAMES)}`)
  }
  return {
    ...chosen !== undefined && { targets: chosen },
    ...failOn !== undefined && { failOn },
    ...maxWarnings !== undefined && { maxWarnings },
    ...baseline !== undefined && { baseline: resolve(dirname(file), baseline) }
  }
}

async function findProjectFile (path: string, cwd: string): Promise<string | undefined> {
  // What is in a folder that may not be searched is left to the judge, which says so.
  const start = await isFolder(path) ? path : dirname(path)
  const isInside = !relative(cwd, start).split(sep).includes('..')
  // Of a skill elsewhere, its own folder and the one that holds it.
  const last = isInside ? resolve(cwd) : dirname(start)
  for (let folder = start; ; folder = dirname(folder)) {
    const file = join(folder, PROJECT_FILE)
    if (existsSync(file)) return file
    if (folder === last || folder === dirname(folder)) return undefined
  }
}
