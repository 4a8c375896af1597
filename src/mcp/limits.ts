/** Entries on one page of an MCP listing; files, over all entries, on one page of `skills/list`. */
export const MCP_PAGE_ENTRIES = 200
export const MCP_PAGE_FILES = 5_000

/** Most open streams of notifications of each kind: `subscriptions/listen` and `GET /mcp`. */
export const MAX_MCP_STREAMS = 1_000

/** Changes of the catalog within this time cause one notification per list, in milliseconds. */
export const MCP_NOTIFY_MS = 50

/** The longest request of `subscriptions/listen`, in characters: its id and URIs stay in memory with the stream. */
export const MAX_LISTEN_CHARACTERS = 65_536

/** The longest message over standard input and output, in bytes: that of the SDK, which clients use too. */
export const MAX_STDIO_MESSAGE_BYTES = 10 * 1_048_576
