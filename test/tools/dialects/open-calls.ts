import type { Dialect, ToolCall } from '../../../src/tools/dialects/dialect.ts'
import { openEnvelope } from '../../../src/tools/dialects/envelope.ts'

/** The calls of a body that has some. */
export function openCalls (body: unknown): {
  dialect: Dialect, calls: readonly ToolCall[], first: ToolCall, batch: boolean
} {
  const envelope = openEnvelope(body)
  if (envelope.kind !== 'calls') throw new Error(envelope.detail)
  const [first] = envelope.calls
  if (first === undefined) throw new Error('no call')
  return { ...envelope, first }
}
