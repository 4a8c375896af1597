/** Largest SKILL.md that `get_skill` returns, in bytes. */
export const MAX_MAIN_FILE_BYTES = 1_048_576

/** Largest file that is returned as text or base64 inside JSON, in bytes. */
export const MAX_TEXT_FILE_BYTES = 10 * 1_048_576

/** Largest frontmatter in bytes. The YAML parser takes at most a few milliseconds for any text of this size. */
export const MAX_FRONTMATTER_BYTES = 8_192

export const MAX_FRONTMATTER_DEPTH = 32

/** Limits of the Agent Skills format and Wave, in Unicode code points. */
export const MAX_NAME_CODE_POINTS = 64
export const MAX_DESCRIPTION_CODE_POINTS = 1024
export const MAX_COMPATIBILITY_CODE_POINTS = 500

/** Length of a main file that the Agent Skills format advises, in lines. */
export const ADVISED_MAIN_FILE_LINES = 500

/**
 * Most files and folders of a skill, and most bytes of all its files, as many as in the largest archive. A larger skill
 * has no revision, manifest or archive. A larger file is streamed without an ETag.
 */
export const MAX_SKILL_ENTRIES = 20_000
export const MAX_SKILL_BYTES = 4_294_967_294

/** Largest archive in bytes: the limit of ZIP without its 64-bit extension, which some readers do not know. */
export const MAX_ARCHIVE_BYTES = 4_294_967_294

/** Searched part of a name, a description or the headings, in characters (UTF-16 code units). */
export const MAX_SEARCHED_CHARACTERS = 8_192

/** Limits of a source or an archive, in bytes: of a file, all files, a name, a path and a link. */
export const MAX_FILE_BYTES = 50 * 1_048_576
export const MAX_PUBLISHED_BYTES = 1_073_741_824
export const MAX_NAME_BYTES = 255
export const MAX_PATH_BYTES = 1_024
export const MAX_LINK_BYTES = 4_095
