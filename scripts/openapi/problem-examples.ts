import { archiveError, mainFileError, fileError, folderError, overloadError, RevisionChangedError, skillError, type SkillErrorCode } from '../../src/core/shared/errors.ts'
import { httpProblems, type Problem, type ProblemCode, skillProblems } from '../../src/schemas/problem.ts'

const FILE = 'assets/logo.png'

/** One sentence of each kind, for the OpenAPI document. */
const sentences = {
  invalid_skill_name: mainFileError.invalidName('../calculator').message,
  skill_not_found: mainFileError.skillNotFound('calculator').message,
  skill_changing: mainFileError.changing('calculator').message,
  main_file_not_found: mainFileError.notFound('calculator').message,
  main_file_too_large: mainFileError.tooLarge('calculator').message,
  main_file_permission_denied: mainFileError.permissionDenied('calculator').message,
  main_file_not_utf8: mainFileError.notUtf8('calculator').message,
  main_file_unreadable: mainFileError.unreadable('calculator').message,
  invalid_file_path: fileError.invalidPath().message,
  path_traversal: fileError.traversal().message,
  file_not_found: fileError.notFound('calculator', FILE).message,
  file_permission_denied: fileError.permissionDenied(FILE).message,
  file_is_directory: fileError.isDirectory('assets').message,
  file_not_regular: fileError.notRegular(FILE).message,
  file_not_text: fileError.notText(FILE).message,
  file_too_large: fileError.tooLarge(FILE, 20_000_000).message,
  file_io_error: fileError.ioError(FILE).message,
  archive_too_large: archiveError.tooLarge('calculator').message,
  skill_too_large: skillError.tooLarge('calculator', 'too_many_files').message,
  revision_changed: new RevisionChangedError(`sha256:${'0123456789abcdef'.repeat(4)}`).message,
  overloaded: overloadError.busy().message,
  skills_folder_not_found: folderError.notFound('/srv/skills').message,
  skills_folder_permission_denied: folderError.permissionDenied().message
} as const satisfies Record<SkillErrorCode, string>

/** A problem of this code as the service would send it. */
export function problemExample (code: ProblemCode): Problem {
  const { status, title } = isSkillErrorCode(code) ? skillProblems[code] : httpProblems[code]
  const error = isSkillErrorCode(code) ? sentences[code] : httpProblems[code].detail
  return {
    type: `urn:skillserve:problem:${code}`,
    title,
    status,
    detail: isSkillErrorCode(code) ? `${error}. ${skillProblems[code].hint}` : error,
    instance: '/skills/calculator',
    error,
    code,
    requestId: '5f0c9a1e-1'
  }
}

function isSkillErrorCode (code: ProblemCode): code is SkillErrorCode {
  return Object.hasOwn(skillProblems, code)
}
