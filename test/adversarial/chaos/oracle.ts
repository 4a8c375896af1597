import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { type DiskState, folderAt, isHiddenInModel, lookup, nodeAt } from './model-disk.ts'
import { digestOf, message, problem, success, type Question, type Said } from './questions.ts'

export interface ModelRoot {
  /** In the model. */
  readonly path: string
  readonly type: 'project' | 'personal'
}

export interface OracleOptions {
  /** In the order in which they win (K7). */
  readonly roots: readonly ModelRoot[]
  /** In the model: what links in the roots may lead into. */
  readonly linkTarget: string
  /** The real folder that is the model's `/`. */
  readonly folder: string
  /** Whether permissions bind the server: it does not run as root. */
  readonly bound: boolean
}

export type Oracle = ReturnType<typeof createOracle>

type ManifestEntry = Readonly<Record<'path' | 'media_type' | 'digest', string>> & { readonly size_bytes: number }

interface ModelSkill {
  readonly name: string
  readonly type: ModelRoot['type']
  /** As configured, on the real disk. */
  readonly folder: string
  /** In the model, without links. */
  readonly base: string
}

type Refusal = 'missing' | 'outside' | 'forbidden' | 'folder'
type Opened = { readonly bytes: Buffer } | { readonly refusal: Refusal }

const MAIN_FILE = /^skill\.md$/i
/** With lines that cannot be read, which make a skill invalid and leave name and description as they are. */
const FRONTMATTER = /^---\nname: (.*)\ndescription: (.*)\n((?:(?!---).*\n)*)---\n/
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  bin: 'application/octet-stream', md: 'text/markdown', MD: 'text/markdown', txt: 'text/plain'
}

export function createOracle ({ roots, linkTarget, folder, bound }: OracleOptions) {
  const catalogs = new WeakMap<DiskState, ReadonlyMap<string, ModelSkill> | undefined>()

  /** Undefined when no root is there (K14). */
  function catalogOf (disk: DiskState): ReadonlyMap<string, ModelSkill> | undefined {
    if (catalogs.has(disk)) return catalogs.get(disk)
    const skills = new Map<string, ModelSkill>()
    const found = roots.map((root) => ({ root, at: lookup(disk, root.path) }))
    for (const { root, at } of found) {
      for (const name of (at.found && at.node.kind === 'folder' ? at.node.entries : new Map<string, number>()).keys()) {
        const base = at.found ? skillFolder(disk, at.path, linkTarget, `${at.path}/${name}`) : undefined
        if (base !== undefined && !skills.has(name)) {
          skills.set(name, { name, type: root.type, folder: `${folder}${root.path}/${name}`, base })
        }
      }
    }
    const catalog = found.some(({ at }) => at.found && at.node.kind === 'folder') ? skills : undefined
    catalogs.set(disk, catalog)
    return catalog
  }

  /**
   * What the contract wants as the answer to a question, were the disk in this state. It shares no code with the
   * service.
   * @param named the state in which a name was looked up, where that was another one
   */
  function expected (disk: DiskState, question: Question, named = disk): Said {
    const catalog = catalogOf(named)
    if (catalog === undefined) {
      return failure(question, 503, `Skills folder not found at path: ${folder}${roots[0]?.path}`)
    }
    const { kind, name } = question
    if (kind === 'list') return success(JSON.stringify({ skills: [...catalog.keys()].sort() }))
    if (kind === 'list_skills') return spaced({ skills: [...catalog.keys()].sort() })
    if (kind === 'skill') return expectedByLabel(disk, named, catalog, question)
    const skill = catalog.get(name)
    if (skill === undefined) {
      return failure(question, 404, `Skill '${name}' not found${kind === 'Skill' ? '.' : ' in skills folder'}`)
    }
    if (kind === 'manifest') return expectedManifest(disk, skill, question)
    return question.path === '' ? expectedDocument(disk, skill, question) : expectedFile(disk, skill, question)
  }

  /** Whether an answer is right in this state; of several skills with one label any may be meant (K29). */
  function isRight (disk: DiskState, question: Question, said: Said, named = disk): boolean {
    if (expected(disk, question, named) === said) return true
    if (question.kind !== 'skill') return false
    // The label gives the name, and the name the folder that has it now.
    return labelledSkills(named, question.name).some((skill) => expectedDocument(disk, skill, question) === said ||
      documentOf(disk, skill.name, question) === said)
  }

  function labelledSkills (disk: DiskState, label: string): readonly ModelSkill[] {
    return [...catalogOf(disk)?.values() ?? []].filter((skill) =>
      labelOf(disk, skill) === label && 'bytes' in openMainFile(disk, skill, 'SKILL.md'))
  }

  /** The document under a folder's name, as the answer to a question; undefined if there is no such skill. */
  function documentOf (disk: DiskState, name: string, question: Question): Said | undefined {
    const skill = catalogOf(disk)?.get(name)
    return skill && expectedDocument(disk, skill, question)
  }

  function expectedDocument (disk: DiskState, skill: ModelSkill, question: Question): Said {
    const { name } = skill
    const preferred = question.kind === 'Skill' || question.kind === 'skill' ? 'SKILL.md' : 'SKILL.MD'
    const opened = openMainFile(disk, skill, preferred)
    if ('refusal' in opened) {
      if (opened.refusal === 'forbidden') {
        return failure(question, 403, `Permission denied reading SKILL.MD for skill '${name}'`)
      }
      if (question.kind === 'Skill') return failure(question, 404, `Skill '${name}' is invalid`)
      return failure(question, 404, `SKILL.MD not found for skill '${name}'`)
    }
    const { bytes } = opened
    if (question.kind === 'document bytes') return success(digestOf(bytes))
    if (!isUtf8(bytes)) return failure(question, 422, `SKILL.MD contains invalid UTF-8 for skill '${name}'`)
    const text = bytes.toString()
    switch (question.kind) {
      case 'get_skill': return spaced({ skill_name: name, documentation: text })
      case 'Skill':
        if (!isValid(text, name)) return failure(question, 200, `Skill '${name}' is invalid`)
        return `Skill: ${name} (Type: ${skill.type})\nPath: ${skill.folder}\n\n${text}`
      case 'skill': return JSON.stringify([
        { type: 'text', text: `<command-message>${question.name} is running…</command-message>\n<command-name>${question.name}</command-name>` },
        { type: 'text', text: `Base directory for this skill: ${skill.folder}\n\n${text.replace(FRONTMATTER, '')}`, isMeta: true }
      ])
      default: return success(JSON.stringify({ skill_name: name, documentation: text }))
    }
  }

  /** K29: the frontmatter's name, then the folder's. */
  function expectedByLabel (disk: DiskState, named: DiskState, catalog: ReadonlyMap<string, ModelSkill>,
    question: Question): Said {
    const label = question.name
    const folder = catalog.get(label)
    const isLabelled = (skill: ModelSkill) =>
      'bytes' in openMainFile(named, skill, 'SKILL.md') && labelOf(named, skill) === label
    const skill = folder !== undefined && labelOf(named, folder) === label
      ? folder
      : [...catalog.values()].filter(isLabelled).sort((a, b) => a.name < b.name ? -1 : 1)[0] ?? folder
    return skill === undefined
      ? failure(question, 404, `Skill "${label}" not found`)
      : expectedDocument(disk, skill, question)
  }

  function expectedFile (disk: DiskState, skill: ModelSkill, question: Question): Said {
    const { path } = question
    const names = mainFiles(disk, skill)
    const fallback = /^SKILL\.(?:md|MD)$/.test(path) && !names.includes(path) ? inOrder(names, path)[0] : undefined
    const opened = open(disk, skill.base, fallback ?? path)
    if ('refusal' in opened) {
      const [status, sentence] = {
        missing: [404, `File '${path}' not found in skill '${skill.name}'`],
        outside: [403, 'Path traversal detected: cannot access files outside skill folder'],
        forbidden: [403, `Cannot read file '${path}': permission denied`],
        folder: [404, `Cannot read file '${path}': is a directory`]
      }[opened.refusal] as [number, string]
      return failure(question, status, sentence)
    }
    const { bytes } = opened
    if (question.kind === 'file') return success(digestOf(bytes))
    if (bytes.includes(0)) return failure(question, 422, `Cannot read file '${path}': not a text file`)
    const encoding = isUtf8(bytes) ? 'utf-8' : 'latin-1'
    const content = bytes.toString(encoding === 'utf-8' ? 'utf8' : 'latin1')
    if (question.kind === 'read_file_in_skill') return content
    return success(
      JSON.stringify({
        success: true, skill_name: skill.name, file_path: path, content, size_bytes: bytes.length, encoding
      }))
  }

  function expectedManifest (disk: DiskState, skill: ModelSkill, question: Question): Said {
    if (!mayList(disk, skill.base)) return failure(question, 403, `Permission denied reading skill '${skill.name}'`)
    const files = [...walk(disk, skill.base, '')].sort((a, b) => a.path < b.path ? -1 : 1)
    const revision =
      createHash('sha256').update(files.map(({ path, digest }) => `${digest} ${path}\0`).join('')).digest('hex')
    return success(JSON.stringify({ skill_name: skill.name, revision: `sha256:${revision}`, files }))
  }

  function * walk (disk: DiskState, base: string, prefix: string): Generator<ManifestEntry> {
    for (const name of folderAt(disk, `${base}/${prefix}`)?.entries.keys() ?? []) {
      const path = prefix + name
      if (nodeAt(disk, `${base}/${path}`)?.kind === 'folder') {
        if (isHiddenInModel(path, true, ignoreOf(disk, base))) continue
        yield * walk(disk, base, `${path}/`)
        continue
      }
      const opened = open(disk, base, path)
      if ('refusal' in opened) continue
      const { bytes } = opened
      yield { path, size_bytes: bytes.length, media_type: mediaType(name, bytes), digest: digestOf(bytes) }
    }
  }

  function openMainFile (disk: DiskState, skill: ModelSkill, preferred: string): Opened {
    if (!mayList(disk, skill.base)) return { refusal: 'forbidden' }
    for (const name of inOrder(mainFiles(disk, skill), preferred)) {
      const opened = open(disk, skill.base, name)
      if ('bytes' in opened || opened.refusal === 'forbidden') return opened
    }
    return { refusal: 'missing' }
  }

  function mainFiles (disk: DiskState, { base }: ModelSkill): readonly string[] {
    if (!mayList(disk, base)) return []
    return [...folderAt(disk, base)?.entries.keys() ?? []].filter((name) =>
      MAIN_FILE.test(name) && !isHiddenInModel(name, false, ignoreOf(disk, base)))
  }

  function labelOf (disk: DiskState, skill: ModelSkill): string {
    return frontmatterOf(disk, skill)?.name ?? skill.name
  }

  function frontmatterOf (disk: DiskState, skill: ModelSkill): {
    readonly name: string
    readonly description: string
    readonly damage: string
  } | undefined {
    const main = openMainFile(disk, skill, 'SKILL.md')
    const match = 'bytes' in main && isUtf8(main.bytes) ? FRONTMATTER.exec(main.bytes.toString()) : null
    return match === null ? undefined : { name: match[1] ?? '', description: match[2] ?? '', damage: match[3] ?? '' }
  }

  function mayList (disk: DiskState, path: string): boolean {
    return !bound || ((folderAt(disk, path)?.mode ?? 0) & 0o500) === 0o500
  }

  function open (disk: DiskState, base: string, path: string): Opened {
    const ignore = ignoreOf(disk, base)
    if (isHiddenInModel(path, true, ignore) && isHiddenInModel(path, false, ignore)) return { refusal: 'missing' }
    const at = lookup(disk, `${base}/${path}`, { bound })
    if (!at.found) return { refusal: at.why === 'missing' && isBehindExit(disk, base, path) ? 'outside' : at.why }
    if (!at.path.startsWith(`${base}/`)) return { refusal: 'outside' }
    if (isHiddenInModel(at.path.slice(base.length + 1), at.node.kind === 'folder', ignore)) {
      return { refusal: 'missing' }
    }
    if (at.node.kind !== 'file') return { refusal: 'folder' }
    if (isHiddenInModel(path, false, ignore)) return { refusal: 'missing' }
    if (bound && (at.node.mode & 0o400) === 0) return { refusal: 'forbidden' }
    return { bytes: at.node.bytes }
  }

  /**
   * The text of a skill's ignore file. In a folder that the server may not search it has no say: nothing there is read.
   */
  function ignoreOf (disk: DiskState, base: string): string | undefined {
    const at = lookup(disk, `${base}/.skillignore`, { follow: false, bound })
    return at.found && at.node.kind === 'file' ? at.node.bytes.toString() : undefined
  }

  /** K19: whether the last folder on the way to what is missing lies outside. */
  function isBehindExit (disk: DiskState, base: string, path: string): boolean {
    const segments = path.split('/')
    const onTheWay = segments.slice(1).map((_, index) =>
      lookup(disk, `${base}/${segments.slice(0, index + 1).join('/')}`, { bound }))
    const last = onTheWay.findLast(({ found }) => found)
    return last?.found === true && last.path !== base && !last.path.startsWith(`${base}/`)
  }

  /** The folder that a name means in a state, as a text to compare. */
  function meaning (disk: DiskState, name: string): string {
    return JSON.stringify(catalogOf(disk)?.get(name) ?? null)
  }

  const labelTexts = new WeakMap<DiskState, string>()

  /** Which skill each label means in a state, and what the document of each is, as a text to compare. */
  function labels (disk: DiskState): string {
    const known = labelTexts.get(disk)
    if (known !== undefined) return known
    const text = JSON.stringify([...catalogOf(disk)?.values() ?? []].map((skill) => {
      const main = openMainFile(disk, skill, 'SKILL.md')
      return [skill, 'bytes' in main ? digestOf(main.bytes) : main.refusal]
    }))
    labelTexts.set(disk, text)
    return text
  }

  /** The valid skills, sorted, as the description of `Skill` lists them (K28). */
  function validSkills (disk: DiskState): readonly string[] {
    return [...catalogOf(disk)?.values() ?? []].flatMap((skill) => {
      const frontmatter = frontmatterOf(disk, skill)
      return frontmatter?.name === skill.name && frontmatter.damage === ''
        ? [`${skill.name}: ${frontmatter.description}`]
        : []
    }).sort()
  }

  /** The manifest of each skill, as the answer to its question. */
  function manifests (disk: DiskState): ReadonlyMap<string, Said> {
    const skills = [...catalogOf(disk)?.values() ?? []]
    return new Map(
      skills.map((skill) =>
        [skill.name, expectedManifest(disk, skill, { kind: 'manifest', name: skill.name, path: '' })]))
  }

  return { expected, isRight, meaning, labels, labelledSkills, documentOf, manifests, validSkills }
}

function isValid (text: string, folder: string): boolean {
  const [, name, , damage] = FRONTMATTER.exec(text) ?? []
  return name === folder && damage === ''
}

/** K4: a folder, or a link to a folder below one of these. The path is without links. */
function skillFolder (disk: DiskState, root: string, linkTarget: string, path: string): string | undefined {
  if (path.includes('/.')) return undefined
  const at = lookup(disk, path)
  if (!at.found || at.node.kind !== 'folder') return undefined
  const isInside = at.path === linkTarget || [root, linkTarget].some((container) => at.path.startsWith(`${container}/`))
  return isInside ? at.path : undefined
}

/** K6: the preferred spelling, the other usual one, the rest. */
function inOrder (names: readonly string[], preferred: string): readonly string[] {
  const rank = (name: string) => name === preferred ? 0 : name === 'SKILL.md' || name === 'SKILL.MD' ? 1 : 2
  return names.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}

/** Text that no table knows is plain text, also in Latin-1: the documents in it have no control characters (K20). */
function mediaType (name: string, bytes: Buffer): string {
  const known = MEDIA_TYPES[name.split('.').at(-1) ?? '']
  return known ?? (bytes.includes(0) ? 'application/octet-stream' : 'text/plain')
}

/** A failure in the form of the route that was asked. */
function failure (question: Question, status: number, sentence: string): Said {
  switch (question.kind) {
    case 'list_skills':
    case 'get_skill': return spaced({ error: sentence })
    case 'read_file_in_skill': return `ERROR: ${sentence}`
    case 'skill': return sentence
    case 'Skill': return message(question, `Error invoking skill '${question.name}': ${sentence}`)
    default: return problem(status, sentence)
  }
}

/** JSON with the blanks of the source documents, for objects of texts and lists of texts (K36). */
function spaced (value: Readonly<Record<string, string | readonly string[]>>): string {
  const members = Object.entries(value).map(([key, member]) =>
    `${JSON.stringify(key)}: ${typeof member === 'string' ? JSON.stringify(member) : `[${member.map((each) => JSON.stringify(each)).join(', ')}]`}`)
  return `{${members.join(', ')}}`
}
