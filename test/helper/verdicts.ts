import type { CatalogSkill } from '../../src/core/ground/skill.ts'
import { describeSkill } from '../../src/core/catalog/index-skill.ts'
import { FileContent } from '../../src/core/files/file-content.ts'
import { mcpFindings } from '../../src/mcp/findings.ts'
import { subjectOf, type Subject, type TargetName, type Verdicts, verdictsOf } from '../../src/verdicts/index.ts'

export interface SkillParts {
  readonly folder?: string
  readonly text?: string
  readonly mainFile?: string
  /** Sizes of other files, by path. */
  readonly files?: Readonly<Record<string, number>>
}

/** A skill in memory, as every door hands it to the rules. */
export async function subjectFor ({ folder = 'demo', text, mainFile = 'SKILL.md', files = {} }: SkillParts): Promise<Subject> {
  const document = text === undefined ? undefined : new FileContent(Buffer.from(text))
  const skill: CatalogSkill = describeSkill({ name: folder, type: 'project', path: `/skills/${folder}`, realPath: `/skills/${folder}`, linked: false }, {
    mainFiles: document === undefined ? [] : [mainFile],
    main: document && { name: mainFile, content: document }
  })
  const listed = Object.entries({ ...document !== undefined && { [mainFile]: document.bytes.length }, ...files }).map(([path, size]) => ({ path, size_bytes: size }))
  return await subjectOf({ skill, manifest: { files: listed }, mainFile: document, fileFindings: [] }, [mcpFindings])
}

export async function verdictsFor (parts: SkillParts, targets?: readonly TargetName[]): Promise<Verdicts> {
  return verdictsOf(await subjectFor(parts), targets)
}
