/** Limits of clients that read skills. */

/** Characters after which Claude Code cuts `description` and `when_to_use` together. */
export const MAX_CLAUDE_LISTING_CHARACTERS = 1_536

/** Documented limits of upload services: bytes of the whole skill (Anthropic), files and bytes in a file (OpenAI). */
export const MAX_UPLOAD_BYTES = 30_000_000
export const MAX_UPLOAD_FILES = 500
export const MAX_UPLOAD_FILE_BYTES = 25_000_000
/** Largest ZIP of a skill that OpenAI accepts, in bytes. */
export const MAX_UPLOAD_ZIP_BYTES = 50_000_000

/** Most files of a skill in `skills/list`: a client takes the whole listing or nothing. */
export const MAX_MCP_LISTED_FILES = 5_000

/** Files and bytes of one skill that hosts of the MCP Skills extension must support. */
export const MCP_ADVISED_SKILL_FILES = 512
export const MCP_ADVISED_SKILL_BYTES = 16 * 1_048_576

/**
 * Limits of the clients of the well-known indexes: UTF-16 units of a description, files and bytes of an unpacked
 * archive, and the bytes after which one client cuts a file.
 */
export const MAX_DISCOVERY_DESCRIPTION_UNITS = 1024
export const MAX_DISCOVERY_FILES = 1_000
export const MAX_DISCOVERY_UNPACKED_BYTES = 52_428_800
export const ADVISED_DISCOVERY_FILE_BYTES = 1_048_576
