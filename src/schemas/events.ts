import { Type } from '@sinclair/typebox'

export const EventsHeadersSchema = Type.Object({
  'last-event-id': Type.Optional(Type.String({
    description: 'Id of the last event that is known, as EventSource sends it: those after it come first'
  }))
})

export const EventsQuerySchema = Type.Object({
  last_event_id: Type.Optional(Type.String({
    description: 'The same, for who cannot set headers; the header counts when both are there'
  }))
})
