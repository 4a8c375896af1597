import type { TSchema } from '@sinclair/typebox'

/** A shared schema by its name, for Fastify and for the OpenAPI document alike. */
export function reference ({ $id }: TSchema): { readonly $ref: string } {
  if ($id === undefined) throw new Error('a shared schema needs an $id')
  return { $ref: `${$id}#` }
}
