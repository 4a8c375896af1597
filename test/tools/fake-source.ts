import { Type } from '@sinclair/typebox'
import { isMainFile } from '../../src/core/format/main-files.ts'
import type { ServableFile } from '../../src/core/read/file-cache.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { RefusedError } from '../../src/core/read/refused.ts'
import type { Snapshot } from '../../src/core/revisions/snapshot.ts'
import { SkillState } from '../../src/core/revisions/state.ts'
import type { SkillSource } from '../../src/core/service.ts'
import { mainFileError, type SkillError } from '../../src/core/shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata, SkillType } from '../../src/core/shared/skill.ts'
import { hasForbiddenSequence } from '../../src/core/shared/skill-name.ts'
import { compareCodePoints } from '../../src/core/shared/text.ts'
import { ErrorResultSchema } from '../../src/tools/outcomes.ts'
import { type Tool, ToolOutcome } from '../../src/tools/tool.ts'

export interface FakeSkill {
  /** The frontmatter's name, when it is not the folder's. */
  readonly label?: string
  readonly description?: string
  readonly type?: SkillType
  readonly findings?: readonly Finding[]
  readonly files?: Readonly<Record<string, string | Buffer | SkillError>>
}

class FakeState extends SkillState {
  readonly #contents: ReadonlyMap<string, FileContent | SkillError>

  constructor (skill: CatalogSkill, contents: ReadonlyMap<string, FileContent | SkillError>) {
    super({ ...skill, mainFiles: [...contents.keys()].filter(isMainFile), refused: undefined })
    this.#contents = contents
  }

  protected async takeSnapshot (): Promise<Snapshot> {
    const files = [...this.#contents].flatMap(([path, content]) => content instanceof FileContent
      ? [{ path, size_bytes: content.bytes.length, media_type: 'text/plain', digest: content.digest }]
      : [])
    const manifest = { skill_name: this.skill.name, revision: 'sha256:', files }
    return { manifest, crc32s: new Map(), findings: [] }
  }

  protected async readPath (path: string): Promise<FileContent> {
    const content = this.#contents.get(path)
    if (content instanceof Error) throw content
    if (content !== undefined) return content
    const isFolder = path === '.' || [...this.#contents.keys()].some((key) => key.startsWith(`${path}/`))
    throw new RefusedError(isFolder ? 'is_directory' : 'not_found')
  }

  protected async openPath (path: string): Promise<ServableFile> {
    return { kind: 'content', content: await this.readPath(path) }
  }
}

/** A SkillSource in memory. `skills` may be replaced by `set`; `failure` is what every question then gets. */
export class FakeSource implements SkillSource {
  #skills = new Map<string, CatalogSkill>()
  #contents = new Map<string, FileContent | SkillError>()
  #names: readonly string[] = []
  #available: readonly SkillMetadata[] = []
  failure: Error | undefined
  readonly scope = ''
  readonly asked: string[] = []

  constructor (skills: Readonly<Record<string, FakeSkill>> = {}) {
    this.set(skills)
  }

  set (skills: Readonly<Record<string, FakeSkill>>): void {
    this.#skills = new Map()
    this.#contents = new Map()
    for (const [name, skill] of Object.entries(skills)) {
      for (const [path, body] of Object.entries(skill.files ?? {})) {
        this.#contents.set(`${name}/${path}`, body instanceof Error ? body : new FileContent(Buffer.from(body)))
      }
      this.#skills.set(name, this.#entry(name, skill))
    }
    this.#names = [...this.#skills.keys()].sort(compareCodePoints)
    this.#available = this.#names.flatMap((name) => {
      const skill = this.#skills.get(name)
      return skill?.valid === true ? [skill.metadata] : []
    })
  }

  async list (): Promise<readonly string[]> {
    this.#ask('list')
    return this.#names
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    this.#ask(`find ${name.slice(0, 50)}`)
    return this.#skills.get(name)
  }

  findNow (name: string): CatalogSkill | undefined {
    return this.#skills.get(name)
  }

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    this.#ask(`read ${name.slice(0, 50)}`)
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    return await answer(this.#stateOf(this.#skills.get(name), name))
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    this.#ask(`readByDisplayName ${displayName.slice(0, 50)}`)
    const skill = [...this.#skills.values()].find(({ metadata }) => metadata.name === displayName) ??
      this.#skills.get(displayName)
    return await answer(this.#stateOf(skill, displayName))
  }

  async available (): Promise<readonly SkillMetadata[]> {
    this.#ask('available')
    return this.#available
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#available
  }

  /** Those with the text in their name, in order. */
  async search (query: string): Promise<readonly string[]> {
    this.#ask(`search ${query.slice(0, 50)}`)
    return this.#names.filter((name) => name.includes(query))
  }

  rootOf (): undefined {
    return undefined
  }

  keptRevisions (): readonly string[] {
    return []
  }

  at (): never {
    throw new Error('no tool chooses a revision')
  }

  revisionOf (): undefined {
    return undefined
  }

  readonly onlyRevision = undefined

  #stateOf (skill: CatalogSkill | undefined, name: string): SkillState {
    if (skill === undefined) throw mainFileError.skillNotFound(name)
    const contents = [...this.#contents].flatMap(([key, content]) =>
      key.startsWith(`${skill.name}/`) ? [[key.slice(skill.name.length + 1), content] as const] : [])
    return new FakeState(skill, new Map(contents))
  }

  #ask (question: string): void {
    this.asked.push(question)
    if (this.failure !== undefined) throw this.failure
  }

  #entry (name: string, { label = name, description = '', type = 'project', findings = [] }: FakeSkill): CatalogSkill {
    const skillPath = `/srv/skills/${name}`
    const content = this.#contents.get(`${name}/SKILL.md`)
    return {
      name,
      metadata: { name: label, description, type, skillPath, path: `${skillPath}/SKILL.md` },
      frontmatter: {},
      findings,
      valid: !findings.some(({ severity }) => severity === 'error'),
      ...content instanceof FileContent && { digest: content.digest }
    }
  }
}

export function errorFinding (code: string, message: string, fix: string): Finding {
  return { code, severity: 'error', message, fix }
}

/** A tool of the test's own; its failures are `FAILED <sentence>`. */
export function fakeTool (members: Partial<Tool>): Tool {
  return {
    name: 'fake',
    toolset: 'reader',
    description: '',
    parameters: { type: 'object', properties: {}, required: [] },
    reads: { event: 'skill.list' },
    resultSchema: Type.Object({}),
    failureSchema: ErrorResultSchema,
    example: { args: {}, outcome: new ToolOutcome({}, '') },
    run: async () => new ToolOutcome({}, ''),
    fail: async (error) => new ToolOutcome({ error: error.message }, `FAILED ${error.message}`, true),
    ...members
  }
}

/** What a test compares of an outcome. */
export function shown ({ result, text, isError }: ToolOutcome): object {
  return { result, text, isError }
}
