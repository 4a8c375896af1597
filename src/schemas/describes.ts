import type { Static, TSchema } from '@sinclair/typebox'

type ReadonlyDeep<T> = T extends object ? { readonly [Key in keyof T]: ReadonlyDeep<T[Key]> } : T

type IfSame<A, B> = [A] extends [B] ? [B] extends [A] ? unknown : never : never

/** Takes the schema of a type of the core, and compiles only while the two describe the same values. */
export function describes<Type> () {
  return <Schema extends TSchema>(schema: Schema & IfSame<ReadonlyDeep<Static<Schema>>, ReadonlyDeep<Type>>): Schema => schema
}
