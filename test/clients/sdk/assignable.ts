import type { Static, TSchema } from '@sinclair/typebox'

/** Does not compile unless the first is assignable to the second. */
export type Assignable<Ours extends Theirs, Theirs> = [Ours, Theirs]

/** As JSON has it, once it has been sent: providers' types know no `readonly`, and index signatures only of type literals. */
export type Sent<T> = { -readonly [Key in keyof T]: Sent<T[Key]> }

export type Definition<Dialect extends { writeDefinitions (tools: never): readonly unknown[] }> = Sent<ReturnType<Dialect['writeDefinitions']>[number]>
export type Call<Dialect extends { readonly example: unknown }> = Sent<Dialect['example']>

/** The result of a call that had this kind of id. */
export type Result<Dialect extends { readonly resultSchema: TSchema }, IdKey extends PropertyKey = never, Id = string> =
  Omit<Static<Dialect['resultSchema']>, IdKey> & { [Key in IdKey]: Id }
