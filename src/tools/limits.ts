/** Limits of tool calls. */

/** Most calls in one request to POST /agent/tool-call, and most bytes of all their results together. */
export const MAX_TOOL_CALLS = 128
export const MAX_TOOL_RESULTS_BYTES = 32 * 1_048_576

/** Most elements of a batch, which may be a whole conversation. */
export const MAX_BATCH_ELEMENTS = 10_000

/** Calls of one batch that run at the same time. Bounds the memory for results that are ready. */
export const TOOL_CALL_CONCURRENCY = 16

/** Deepest JSON in a body or in the `arguments` of a call, in levels. */
export const MAX_JSON_DEPTH = 64

/** Longest log line of a tool call, in characters. */
export const MAX_LOG_LINE_CHARACTERS = 200

/** Skills that `search_skills` returns by default, and the largest `limit`. */
export const DEFAULT_FOUND_SKILLS = 10
export const MAX_FOUND_SKILLS = 50

/** Valid skills that a failure of `Skill` lists: all 14,000 of a catalog would be 3 MB for a misspelt name. */
export const MAX_AVAILABLE_SKILLS = 200
