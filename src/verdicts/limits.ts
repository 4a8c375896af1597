/** Limits of the clients that skills are made for, with their units. */

/** Claude Code cuts a description, together with `when_to_use`, after so many characters. */
export const MAX_CLAUDE_LISTING_CHARACTERS = 1_536

/** What upload services are said to take: bytes of the whole skill (Anthropic), files and bytes in a file (OpenAI). */
export const MAX_UPLOAD_BYTES = 30_000_000
export const MAX_UPLOAD_FILES = 500
export const MAX_UPLOAD_FILE_BYTES = 25_000_000
/** Largest ZIP of a skill that OpenAI takes. */
export const MAX_UPLOAD_ZIP_BYTES = 50_000_000

/** Most files of a skill that `skills/list` has an entry for: a client takes the whole listing or nothing. */
export const MAX_MCP_LISTED_FILES = 5_000

/** What hosts of the MCP Skills extension have to support for one skill, in files and bytes. */
export const MCP_ADVISED_SKILL_FILES = 512
export const MCP_ADVISED_SKILL_BYTES = 16 * 1_048_576

/**
 * What the clients of the well-known indexes take: UTF-16 units of a description, files and bytes of an unpacked
 * archive; and the size after which one client cuts a file.
 */
export const MAX_DISCOVERY_DESCRIPTION_UNITS = 1024
export const MAX_DISCOVERY_FILES = 1_000
export const MAX_DISCOVERY_UNPACKED_BYTES = 52_428_800
export const ADVISED_DISCOVERY_FILE_BYTES = 1_048_576
