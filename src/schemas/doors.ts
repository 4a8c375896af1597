import { Type } from '@sinclair/typebox'
import { named } from './typebox.ts'

export const DoorsSchema = named('Doors', Type.Object({
  name: Type.Literal('skillserve'),
  version: Type.String(),
  doors: Type.Array(Type.Object({
    methods: Type.Array(Type.String()),
    path: Type.String({ description: 'With parameters as `:name`, and `*` for the rest of the path' }),
    what: Type.String()
  }))
}), { name: 'skillserve', version: '1.0.0', doors: [{ methods: ['GET'], path: '/skills', what: 'List all skills' }] })
