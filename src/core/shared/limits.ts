/** Bounds of the core, by name and with their units. */

/** Largest SKILL.md that `get_skill` returns, in bytes. */
export const MAX_MAIN_FILE_BYTES = 1_048_576

/** Largest file that is returned as text or base64 inside JSON, in bytes. */
export const MAX_TEXT_FILE_BYTES = 10 * 1_048_576

/** Largest frontmatter, in bytes: no arrangement of that many takes the YAML parser more than a few milliseconds. */
export const MAX_FRONTMATTER_BYTES = 8_192

export const MAX_FRONTMATTER_DEPTH = 32

/** Wave's and the format's limits, in Unicode code points. */
export const MAX_NAME_CODE_POINTS = 64
export const MAX_DESCRIPTION_CODE_POINTS = 1024
export const MAX_COMPATIBILITY_CODE_POINTS = 500

/** What the Agent Skills format advises for a main file, in lines. */
export const ADVISED_MAIN_FILE_LINES = 500

/**
 * Most files and folders of a skill, and the bytes of all its files together, which are those of the largest archive.
 * A skill with more has no revision, no manifest and no archive. A file with more is streamed without a tag.
 */
export const MAX_SKILL_ENTRIES = 20_000
export const MAX_SKILL_BYTES = 4_294_967_294

/** The largest archive in bytes: what ZIP holds without its 64-bit extension, which not every reader knows. */
export const MAX_ARCHIVE_BYTES = 4_294_967_294

/** How much of a name, a description or the headings is searched, in characters (UTF-16 code units). */
export const MAX_SEARCHED_CHARACTERS = 8_192

/** What a source or an archive may hold: bytes of a file, of all files, of a name, of a path and of a link. */
export const MAX_FILE_BYTES = 50 * 1_048_576
export const MAX_PUBLISHED_BYTES = 1_073_741_824
export const MAX_NAME_BYTES = 255
export const MAX_PATH_BYTES = 1_024
export const MAX_LINK_BYTES = 4_095
