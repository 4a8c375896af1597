/** Most open streams of GET /events. */
export const MAX_EVENT_STREAMS = 256

/** Most bytes queued for one client of GET /events before it is disconnected: all recent events fit. */
export const MAX_EVENT_STREAM_BYTES = 1_048_576

/** Pause between two comments that keep a silent stream open: less than proxies and this service wait. */
export const EVENT_HEARTBEAT_MS = 15_000

/** Reconnection time that clients are sent as `retry`, and the random part that is added to it. */
export const EVENT_RETRY_MS = 2_000
export const EVENT_RETRY_SPREAD_MS = 2_000

/** Largest request body. */
export const MAX_BODY_BYTES = 1_048_576

/** Largest skill in the body of POST /validate, packed: it is in memory while it is validated. */
export const MAX_VALIDATED_BYTES = 10 * 1_048_576
