/** Bounds of the MCP door, by name and with their units. */

/** Entries on one page of an MCP listing; files, over all entries, on one page of `skills/list`. */
export const MCP_PAGE_ENTRIES = 200
export const MCP_PAGE_FILES = 5_000

/** Open streams of notifications, of each kind: `subscriptions/listen`, and `GET /mcp`; and the time in which changes make one notification, in milliseconds. */
export const MAX_MCP_STREAMS = 1_000
export const MCP_NOTIFY_MS = 50

/** Files that one stream of `subscriptions/listen` follows: each is looked up before the stream begins. */
export const MAX_FOLLOWED_FILES = 5_000

/**
 * Requests of all open streams of `subscriptions/listen` together, in characters: a stream keeps its id and its URIs, of which a body holds 1 MiB.
 * Measured: a character takes up to 10 bytes, where URIs are short. 1,000 streams of 200 URIs fit.
 */
export const MAX_LISTEN_CHARACTERS = 16_777_216
