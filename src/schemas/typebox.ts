import { type Static, type TSchema, Type, type TUnsafe } from '@sinclair/typebox'

/** Makes a schema with `enum`, which clients and code generators know; a union of literals would be an `anyOf`. */
export function StringEnum<const Values extends readonly string[]> (
  values: Values, options: object = {}
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...options })
}

/** Names a schema, which routes reference by this name: a component of the OpenAPI document. */
export function named<Schema extends TSchema> (name: string, schema: Schema, example: unknown): Schema {
  return { $id: name, title: name, examples: [example], ...schema }
}

/** Makes a schema that also allows `null`. */
export function nullable<Schema extends TSchema> (schema: Schema): TUnsafe<Static<Schema> | null> {
  const { type, enum: values } = schema
  return Type.Unsafe({ ...schema, type: [type, 'null'], ...values && { enum: [...values, null] } })
}

export function exampleOf ({ examples: [example] = [] }: TSchema): object {
  return example as object
}

/** Returns a reference to a shared schema, for Fastify and the OpenAPI document alike. */
export function reference ({ $id }: TSchema): { readonly $ref: string } {
  if ($id === undefined) throw new Error('a shared schema needs an $id')
  return { $ref: `${$id}#` }
}

export type ReadonlyDeep<T> = T extends object ? { readonly [Key in keyof T]: ReadonlyDeep<T[Key]> } : T

type IfSame<A, B> = [A] extends [B] ? [B] extends [A] ? unknown : never : never

/** Accepts the schema of a type of the core; compilation fails if the two describe different values. */
export function describes<Type> () {
  type Same<Schema extends TSchema> = IfSame<ReadonlyDeep<Static<Schema>>, ReadonlyDeep<Type>>
  return <Schema extends TSchema>(schema: Schema & Same<Schema>): Schema => schema
}
