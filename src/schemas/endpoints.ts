import { Type } from '@sinclair/typebox'
import { named } from './typebox.ts'

export const EndpointsSchema = named('Endpoints', Type.Object({
  name: Type.Literal('skillserve'),
  version: Type.String(),
  endpoints: Type.Array(Type.Object({
    methods: Type.Array(Type.String()),
    path: Type.String({ description: 'With parameters as `:name`, and `*` for the rest of the path' }),
    summary: Type.String()
  }))
}), {
  name: 'skillserve',
  version: '1.0.0',
  endpoints: [{ methods: ['GET'], path: '/skills', summary: 'List all skills' }]
})
