/** An object of parsed JSON from outside: read its own properties only, so that `__proto__` is data. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject (value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The own property, or undefined; also for values that are not objects. */
export function own (value: unknown, key: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}
