import type { CatalogSkill } from '../../src/core/shared/skill.ts'
import { describeSkill } from '../../src/core/read-skill.ts'
import { type Refusal, RefusedError } from '../../src/core/read/refused.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { subjectOf, type Subject, type TargetName, type Verdicts, verdictsOf } from '../../src/verdicts/index.ts'

export interface SkillParts {
  readonly folder?: string
  /** The name in its source, where the folder has another one by a prefix. */
  readonly ownName?: string
  readonly text?: string
  /** Instead of a text. */
  readonly bytes?: Buffer | undefined
  readonly mainFile?: string
  /** All main files of the folder. Default: `mainFile`, where there is a text. */
  readonly mainFiles?: readonly string[]
  /** Why the main file cannot be read. */
  readonly refusal?: Refusal
  /** Sizes of other files, by path. */
  readonly files?: Readonly<Record<string, number>>
}

/** A skill in memory, as every door hands it to the rules. */
export async function subjectFor ({ folder = 'demo', ownName, text, bytes = text === undefined ? undefined : Buffer.from(text), mainFile = 'SKILL.md', mainFiles = bytes === undefined ? [] : [mainFile], refusal, files = {} }: SkillParts): Promise<Subject> {
  const document = bytes && new FileContent(bytes)
  const skill: CatalogSkill = describeSkill({ name: folder, type: 'project', path: `/skills/${folder}`, realPath: `/skills/${folder}`, linked: false, ...ownName !== undefined && { ownName } }, {
    mainFiles,
    main: document && { name: mainFile, content: document },
    ...refusal !== undefined && { refused: new RefusedError(refusal) }
  })
  const listed = Object.entries({ ...document !== undefined && { [mainFile]: document.bytes.length }, ...files }).map(([path, size]) => ({ path, size_bytes: size }))
  return await subjectOf({ skill, manifest: { files: listed }, mainFile: document, fileFindings: [] })
}

export async function verdictsFor (parts: SkillParts, targets?: readonly TargetName[]): Promise<Verdicts> {
  return verdictsOf(await subjectFor(parts), targets)
}
