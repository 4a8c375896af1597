/** Bounds of requests and streams, by name and with their units. */

/** Streams of GET /events that are open at the same time. */
export const MAX_EVENT_STREAMS = 256

/** What waits for one client of GET /events, in bytes, before it is dropped: all recent events fit, whatever their names. */
export const MAX_EVENT_STREAM_BYTES = 1_048_576

/** Pause between two comments that keep a silent stream open, in milliseconds: less than proxies and we ourselves wait. */
export const EVENT_HEARTBEAT_MS = 15_000

/** Shortest time that a client of GET /events waits before it connects again, in milliseconds: sent as `retry`. */
export const EVENT_RETRY_MS = 2_000

/** What is added at random to that, at most: clients of a process that ended do not all return at once. */
export const EVENT_RETRY_SPREAD_MS = 2_000

/** Largest request body, in bytes. */
export const MAX_BODY_BYTES = 1_048_576

/** Largest skill in the body of POST /validate, packed, in bytes: it is in memory while it is judged. */
export const MAX_VALIDATED_BYTES = 10 * 1_048_576

/** Pipelined requests that wait for the answers before them, on all connections: some 4 KB of memory each. */
export const MAX_WAITING_REQUESTS = 20_000

/**
 * Bodies that are read, and answers that are made or wait for their clients, all together in bytes; what several answers share counts
 * once. The process has several times as much in memory: texts, their bytes, and what the system has not taken.
 */
export const MAX_HELD_BYTES = 100_663_296

/**
 * How long the rest of a body is read that nobody wants, in milliseconds. Closing the connection before would reset it, and a client
 * that is still sending would lose its answer (RFC 9112 §9.6).
 */
export const LINGER_MS = 5_000
