import type { ProblemCode } from '../schemas/problem.ts'

/** What requests of one kind can meet: routes name the sets, and their own codes besides. */
type Codes = readonly ProblemCode[]

/** The folders of skills are not there. */
export const FOLDER_PROBLEMS: Codes =
  ['skills_folder_not_found', 'skills_folder_permission_denied', 'source_not_available']

/** The path has a parameter. */
export const PATH_PROBLEMS: Codes = ['bad_url', 'uri_too_long']

/** The path names a skill. */
export const SKILL_PROBLEMS: Codes = [
  ...PATH_PROBLEMS, 'invalid_skill_name', 'skill_not_found', 'skill_changing', 'disk_not_answering', ...FOLDER_PROBLEMS
]

/** The request may name a revision. */
export const REVISION_PROBLEMS: Codes = ['revision_changed', 'skill_too_large']

/** The answer needs files of a skill, which ones the request does not say. */
export const READ_PROBLEMS: Codes = ['file_permission_denied', 'file_io_error', 'skill_too_large']

/** The answer is the main file of a skill. */
export const MAIN_FILE_PROBLEMS: Codes = [
  'main_file_permission_denied', 'main_file_not_found', 'main_file_too_large', 'range_not_satisfiable',
  'main_file_not_utf8', 'main_file_unreadable'
]

/** The path names a file of a skill. */
export const FILE_PROBLEMS: Codes = [
  'invalid_file_path', 'path_traversal', 'file_not_found', 'file_is_directory', 'file_not_regular', 'file_too_large',
  'range_not_satisfiable', 'file_not_text', ...READ_PROBLEMS
]

/** The path is one that a discovery index lists. */
export const ARTIFACT_PROBLEMS: Codes = [
  ...PATH_PROBLEMS, 'artifact_not_found', 'skill_not_found', 'skill_changing', 'main_file_not_found', 'file_not_found',
  'range_not_satisfiable', 'main_file_permission_denied', 'main_file_unreadable', ...READ_PROBLEMS, ...FOLDER_PROBLEMS
]

/** The request has a JSON body. */
export const BODY_PROBLEMS: Codes = ['invalid_json', 'json_too_deep', 'body_too_large', 'unsupported_media_type']
