import { Type, type TUnsafe } from '@sinclair/typebox'

/** One of these strings, as the `enum` that clients and code generators know; a union of literals becomes an `anyOf`. */
export function StringEnum<const Values extends readonly string[]> (values: Values, options: object = {}): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...options })
}
