import { MAX_ARCHIVE_BYTES, MAX_SKILL_BYTES, MAX_SKILL_ENTRIES, MAX_TEXT_FILE_BYTES } from './limits.ts'

/** Error codes of the core, which are part of the API, and their kinds. */
const KINDS = {
  invalid_skill_name: 'invalid',
  skill_not_found: 'missing',
  skill_changing: 'unavailable',
  disk_not_answering: 'unavailable',
  main_file_not_found: 'missing',
  main_file_too_large: 'too_large',
  main_file_permission_denied: 'forbidden',
  main_file_not_utf8: 'unprocessable',
  main_file_unreadable: 'broken',
  invalid_file_path: 'invalid',
  path_traversal: 'forbidden',
  file_not_found: 'missing',
  file_permission_denied: 'forbidden',
  file_is_directory: 'missing',
  file_not_regular: 'missing',
  file_not_text: 'unprocessable',
  file_too_large: 'too_large',
  file_io_error: 'broken',
  archive_too_large: 'too_large',
  skill_too_large: 'too_large',
  revision_changed: 'outdated',
  overloaded: 'unavailable',
  skills_folder_not_found: 'unavailable',
  source_not_available: 'unavailable',
  skills_folder_permission_denied: 'unavailable'
} as const

export type SkillErrorCode = keyof typeof KINDS

/** Each API maps these to its own statuses, codes or types. */
export type SkillErrorKind = (typeof KINDS)[SkillErrorCode]

export const skillErrorCodes = Object.keys(KINDS) as readonly SkillErrorCode[]

export function kindOf (code: SkillErrorCode): SkillErrorKind {
  return KINDS[code]
}

/** The message is a sentence without a full stop, and safe to show: it has no error of the system in it. */
export class SkillError extends Error {
  readonly code: SkillErrorCode

  /** @param cause error of the operating system, for the log only */
  constructor (code: SkillErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'SkillError'
    this.code = code
  }

  get kind (): SkillErrorKind {
    return kindOf(this.code)
  }
}

/** Returns undefined for a skill that is not there, or cannot be read. */
export async function unlessRefused<T> (read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SkillError) return undefined
    throw error
  }
}

/** Errors of `get_skill`. */
export const mainFileError = {
  invalidName: aboutSkill('invalid_skill_name',
    (name) => `Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'`),
  skillNotFound: aboutSkill('skill_not_found', (name) => `Skill '${name}' not found in skills folder`),
  notFound: aboutSkill('main_file_not_found', (name) => `SKILL.MD not found for skill '${name}'`),
  tooLarge: aboutSkill('main_file_too_large', (name) => `SKILL.MD too large (>1MB) for skill '${name}'`),
  permissionDenied: aboutSkill('main_file_permission_denied',
    (name) => `Permission denied reading SKILL.MD for skill '${name}'`),
  notUtf8: aboutSkill('main_file_not_utf8', (name) => `SKILL.MD contains invalid UTF-8 for skill '${name}'`),
  unreadable: aboutSkill('main_file_unreadable', errorReading),
  noAnswer: aboutSkill('disk_not_answering', errorReading),
  /** The skill is rewritten too often to be read in one state. */
  changing: aboutSkill('skill_changing', errorReading)
} as const

/** `read_file_in_skill`'s sentences. */
export const fileError = {
  invalidName: () => new SkillError('invalid_skill_name', 'Invalid skill name: must not contain special characters'),
  invalidPath: () => new SkillError('invalid_file_path', 'Invalid file path'),
  traversal: () =>
    new SkillError('path_traversal', 'Path traversal detected: cannot access files outside skill folder'),
  notFound: (name: string, file: string) =>
    new SkillError('file_not_found', `File '${file}' not found in skill '${name}'`),
  permissionDenied: aboutFile('file_permission_denied', 'permission denied'),
  isDirectory: aboutFile('file_is_directory', 'is a directory'),
  notRegular: aboutFile('file_not_regular', 'not a regular file'),
  notText: aboutFile('file_not_text', 'not a text file'),
  tooLarge: (file: string, bytes: number | bigint) =>
    aboutFile('file_too_large', `file too large (${bytes} bytes, limit ${MAX_TEXT_FILE_BYTES})`)(file),
  ioError: aboutFile('file_io_error', 'I/O error'),
  noAnswer: aboutFile('disk_not_answering', 'I/O error'),
  changing: aboutFile('skill_changing', 'I/O error')
} as const

/** Sentences of manifests, archives and revisions. */
export const skillError = {
  tooLarge: (name: string, exceededLimit: SkillLimit) => new SkillTooLargeError(name, exceededLimit),
  permissionDenied: aboutSkill('file_permission_denied', (name) => `Permission denied reading skill '${name}'`),
  ioError: aboutSkill('file_io_error', (name) => `Error reading skill '${name}'`),
  noAnswer: aboutSkill('disk_not_answering', (name) => `Error reading skill '${name}'`),
  archiveTooLarge: aboutSkill('archive_too_large',
    (name) => `Skill '${name}' does not fit into an archive (${MAX_ARCHIVE_BYTES} bytes)`),
  changing: aboutSkill('skill_changing', (name) => `Skill '${name}' changed while it was read`)
} as const

/** Ends of sentences about a skill. */
export const SKILL_LIMITS = {
  too_many_files: `more than ${MAX_SKILL_ENTRIES} files and folders`,
  too_many_bytes: `more than ${MAX_SKILL_BYTES} bytes`
} as const

export type SkillLimit = keyof typeof SKILL_LIMITS

/** A skill with too many files or bytes. Single files can still be read. */
export class SkillTooLargeError extends SkillError {
  readonly exceededLimit: SkillLimit

  constructor (name: string, exceededLimit: SkillLimit) {
    super('skill_too_large', `Skill '${name}' has ${SKILL_LIMITS[exceededLimit]}`)
    this.exceededLimit = exceededLimit
  }
}

/** The requested revision or representation of a skill is no longer the present one. */
export class RevisionChangedError extends SkillError {
  /** Present revision of the skill; undefined if unknown. */
  readonly present: string | undefined

  /** @param name name of the skill, if the request is about several */
  constructor (present: string | undefined, name?: string) {
    const subject = name === undefined ? 'The skill' : `Skill '${name}'`
    super('revision_changed',
      present === undefined ? `${subject} has changed` : `${subject} has changed: its revision is ${present} now`)
    this.present = present
  }
}

export const overloadError = {
  busy: () => new SkillError('overloaded', 'The service is overloaded')
} as const

/** Errors of `list_skills`, and of all tools while no root exists. */
export const folderError = {
  notFound: (path: string) => new SkillError('skills_folder_not_found', `Skills folder not found at path: ${path}`),
  permissionDenied: () => new SkillError('skills_folder_permission_denied', 'Permission denied reading skills folder'),
  /** For a source that was never fetched: its folder concerns no caller. */
  notFetched: (source: string) => new SkillError('source_not_available', `The source ${source} is not available yet`)
} as const

function aboutSkill (code: SkillErrorCode, sentence: (name: string) => string) {
  return (name: string, cause?: unknown) => new SkillError(code, sentence(name), cause)
}

function errorReading (name: string): string {
  return `Error reading SKILL.MD for skill '${name}'`
}

function aboutFile (code: SkillErrorCode, reason: string) {
  return (file: string, cause?: unknown) => new SkillError(code, `Cannot read file '${file}': ${reason}`, cause)
}
