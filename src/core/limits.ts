/** Every bound of the service, by name and with its unit. A limit that is not here does not exist. */

/** Largest SKILL.md that `get_skill` returns, in bytes (K16). */
export const MAX_MAIN_FILE_BYTES = 1_048_576

/** Largest file that is returned as text or base64 inside JSON, in bytes (K21). */
export const MAX_TEXT_FILE_BYTES = 10 * 1_048_576

/** Files up to this size, in bytes, are read whole and may stay in memory; larger ones are streamed (K44). */
export const MAX_BUFFERED_FILE_BYTES = 262_144

/** Weight of all file contents kept in memory together, in bytes, renderings included (K32). */
export const CONTENT_CACHE_BYTES = 32 * 1_048_576

/**
 * Largest frontmatter that is handed to the YAML parser, in bytes (K10): twice the largest one known, and no arrangement
 * of that many bytes takes the parser more than a few milliseconds.
 */
export const MAX_FRONTMATTER_BYTES = 8_192

/** Deepest nesting of frontmatter (K10). */
export const MAX_FRONTMATTER_DEPTH = 32

/** Wave's and the format's limits, in Unicode code points (K9). */
export const MAX_NAME_CODE_POINTS = 64
export const MAX_DESCRIPTION_CODE_POINTS = 1024
export const MAX_COMPATIBILITY_CODE_POINTS = 500

/** Longest piece of work between two turns of the event loop, in milliseconds. */
export const SLICE_MS = 5

/** Quiet time after a watcher event before the index looks, and the longest it waits in a storm, in milliseconds (K52). */
export const DEBOUNCE_MS = 50
export const MAX_DEBOUNCE_MS = 150

/** Pause between two looks at a folder or file when the watcher polls, in milliseconds (K54). */
export const POLL_MS = 1_000

/** Folders that are put under watch at the same time: setting up a watch takes turns of the thread pool. */
export const WATCH_BATCH = 64

/** Pause between two full comparisons of index and disk, in milliseconds: without and with a working watcher (K52, K54). */
export const RECONCILE_DEGRADED_MS = 20_000
export const RECONCILE_HEALTHY_MS = 120_000

/**
 * A file whose timestamps are younger than this when it was read, in milliseconds, is read again on the next
 * request: a kernel clock tick could hide a second edit behind the same timestamp ("racily clean" in git's index).
 */
export const RACY_WINDOW_MS = 25

/** Calls in one request to POST /agent/tool-call, and the bytes of all their results together (K34). */
export const MAX_TOOL_CALLS = 128
export const MAX_TOOL_RESULTS_BYTES = 32 * 1_048_576

/** Calls of one batch that run at the same time (K34): bounds the memory that results wait in. */
export const TOOL_CALL_CONCURRENCY = 16

/** Change events that a listener who was away can still be told: one that missed more reads the catalogue again. */
export const MAX_RECENT_EVENTS = 1_024

/** How long the change feed goes on after its last listener has left, in milliseconds: one that comes back misses nothing. */
export const FEED_GRACE_MS = 60_000

/**
 * Coarsest timestamps of a file system, in milliseconds (FAT's): a file that carries one older than this when the change
 * feed begins has not changed since.
 */
export const TIMESTAMP_STEP_MS = 2_000

/** Streams of GET /events that are open at the same time. */
export const MAX_EVENT_STREAMS = 256

/** What waits for one client of GET /events, in bytes, before it is dropped: all recent events fit, whatever their names. */
export const MAX_EVENT_STREAM_BYTES = 1_048_576

/** Pause between two comments that keep a silent stream open, in milliseconds: less than proxies and we ourselves wait. */
export const EVENT_HEARTBEAT_MS = 15_000

/** What a client of GET /events is told to wait before it connects again, in milliseconds. */
export const EVENT_RETRY_MS = 3_000

/** Largest request body, in bytes, and deepest JSON in it or in a call's `arguments` (K57). */
export const MAX_BODY_BYTES = 1_048_576
export const MAX_JSON_DEPTH = 64

/** Longest line of K39, in characters. */
export const MAX_LOG_LINE_CHARACTERS = 200

/** Digests of files kept by identity, so that an unchanged file is hashed once (K43). About 250 bytes each. */
export const MAX_CACHED_DIGESTS = 50_000

/** Files and folders whose signatures are kept with manifests, over all skills (K43). About 300 bytes each. */
export const MAX_CACHED_MANIFEST_ENTRIES = 30_000
