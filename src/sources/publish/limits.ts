/** Bytes of all skills of a source, and of one file. */
export const MAX_PUBLISHED_BYTES = 1_073_741_824
export const MAX_FILE_BYTES = 50 * 1_048_576

/** Of one name in a path, as file systems have it. */
export const MAX_NAME_BYTES = 255

/** Of a whole path, and of what a link says. */
export const MAX_PATH_BYTES = 1_024
export const MAX_LINK_BYTES = 4_095
