import { mainFileError, fileError, type SkillError, skillError } from '../shared/errors.ts'
import { isPassedOver, RefusedError } from '../read/refused.ts'

/** Turns a refusal of a main file into `get_skill`'s sentence. Other errors stay as they are. */
export function mainFileSentence (error: RefusedError, name: string): SkillError
export function mainFileSentence (error: unknown, name: string): unknown
export function mainFileSentence (error: unknown, name: string): unknown {
  if (!(error instanceof RefusedError)) return error
  if (isPassedOver(error.refusal)) return mainFileError.notFound(name)
  switch (error.refusal) {
    case 'too_large': return mainFileError.tooLarge(name)
    case 'permission_denied': return mainFileError.permissionDenied(name, error.cause)
    case 'changed': return mainFileError.changing(name)
    case 'no_answer': return mainFileError.noAnswer(name, error.cause)
    default: return mainFileError.unreadable(name, error.cause)
  }
}

/** The same for a file, with `read_file_in_skill`'s sentences. */
export function fileSentence (error: unknown, name: string, file: string): unknown {
  if (!(error instanceof RefusedError)) return error
  switch (error.refusal) {
    case 'not_found': return fileError.notFound(name, file)
    case 'outside': return fileError.traversal()
    case 'is_directory': return fileError.isDirectory(file)
    case 'not_regular': return fileError.notRegular(file)
    case 'too_large': return fileError.tooLarge(file, error.size)
    case 'permission_denied': return fileError.permissionDenied(file, error.cause)
    case 'changed': return fileError.changing(file)
    case 'no_answer': return fileError.noAnswer(file, error.cause)
    default: return fileError.ioError(file, error.cause)
  }
}

/** The same for the files of a skill, which could not be listed. */
export function skillSentence (error: unknown, name: string): unknown {
  if (!(error instanceof RefusedError)) return error
  switch (error.refusal) {
    case 'not_found': return mainFileError.skillNotFound(name)
    case 'too_many_files':
    case 'too_many_bytes': return skillError.tooLarge(name, error.refusal)
    case 'permission_denied': return skillError.permissionDenied(name, error.cause)
    case 'no_answer': return skillError.noAnswer(name, error.cause)
    case 'io_error': return skillError.ioError(name, error.cause)
    default: return skillError.changing(name)
  }
}
