import { type Static, type TSchema, Type, type TUnsafe } from '@sinclair/typebox'

/**
 * One of these strings, as the `enum` that clients and code generators know; a union of literals becomes an `anyOf`.
 */
export function StringEnum<const Values extends readonly string[]> (
  values: Values, options: object = {}
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...options })
}

/** A shape that routes refer to by its name: a component of the OpenAPI document. */
export function named<Schema extends TSchema> (name: string, schema: Schema, example: unknown): Schema {
  return { $id: name, title: name, examples: [example], ...schema }
}

/** A schema of one type that takes `null` too. */
export function nullable<Schema extends TSchema> (schema: Schema): TUnsafe<Static<Schema> | null> {
  const { type, enum: values } = schema
  return Type.Unsafe({ ...schema, type: [type, 'null'], ...values && { enum: [...values, null] } })
}

/** The example of a schema. */
export function exampleOf ({ examples: [example] = [] }: TSchema): object {
  return example as object
}

/** A shared schema by its name, for Fastify and for the OpenAPI document alike. */
export function reference ({ $id }: TSchema): { readonly $ref: string } {
  if ($id === undefined) throw new Error('a shared schema needs an $id')
  return { $ref: `${$id}#` }
}

export type ReadonlyDeep<T> = T extends object ? { readonly [Key in keyof T]: ReadonlyDeep<T[Key]> } : T

type IfSame<A, B> = [A] extends [B] ? [B] extends [A] ? unknown : never : never

/** Takes the schema of a type of the core, and compiles only while the two describe the same values. */
export function describes<Type> () {
  type Same<Schema extends TSchema> = IfSame<ReadonlyDeep<Static<Schema>>, ReadonlyDeep<Type>>
  return <Schema extends TSchema>(schema: Schema & Same<Schema>): Schema => schema
}
