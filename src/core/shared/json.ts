/** An object of parsed JSON from outside: read its own properties only, so that `__proto__` is data. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject (value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an own property, or undefined; also for values that are not objects. */
export function own (value: unknown, key: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** The own property if it is text, otherwise an empty text. */
export function ownText (value: unknown, key: string): string {
  const text = own(value, key)
  return typeof text === 'string' ? text : ''
}

/** Maps all keys and scalars of a value of bounded depth. */
export function mapScalars (value: unknown, map: (scalar: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((member) => mapScalars(member, map))
  if (!isJsonObject(value)) return map(value)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [map(key), mapScalars(member, map)]))
}

/** Replaces halves of surrogate pairs, which JSON in UTF-8 cannot carry, by U+FFFD. */
export function toWellFormed (value: unknown): unknown {
  return mapScalars(value, (scalar) => typeof scalar === 'string' ? scalar.toWellFormed() : scalar)
}

/** Whether a parsed value nests arrays and objects deeper than `levels`; `[]` is one level. */
export function isDeeperThan (value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1))
}
