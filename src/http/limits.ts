/** Bounds of requests and streams, by name and with their units. */

/** Streams of GET /events that are open at the same time. */
export const MAX_EVENT_STREAMS = 256

/**
 * What waits for one client of GET /events, in bytes, before it is dropped: all recent events fit, whatever their
 * names.
 */
export const MAX_EVENT_STREAM_BYTES = 1_048_576

/**
 * Pause between two comments that keep a silent stream open, in milliseconds: less than proxies and we ourselves wait.
 */
export const EVENT_HEARTBEAT_MS = 15_000

/** Shortest time that a client of GET /events waits before it connects again, in milliseconds: sent as `retry`. */
export const EVENT_RETRY_MS = 2_000

/** What is added at random to that, at most: clients of a process that ended do not all return together. */
export const EVENT_RETRY_SPREAD_MS = 2_000

/** Largest request body, in bytes. */
export const MAX_BODY_BYTES = 1_048_576

/** Largest skill in the body of POST /validate, packed, in bytes: it is in memory while it is validated. */
export const MAX_VALIDATED_BYTES = 10 * 1_048_576
