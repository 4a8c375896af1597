import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Adds to a stream what its client has not read yet, up to a bound in bytes; beyond it the client is dropped. */
export function pushBounded (stream: Readable, frame: Uint8Array, maxBytes: number, onDrop: (unreadBytes: number) => void): void {
  if (stream.destroyed) return
  const { readableLength } = stream
  if (readableLength + frame.length <= maxBytes) {
    stream.push(frame)
    return
  }
  stream.destroy()
  onDrop(readableLength)
}

/** Cuts the answers among these, ended a moment ago, whose ends wait behind what their clients have not read. */
export async function cutUnread (responses: readonly ServerResponse[]): Promise<void> {
  await nextTurn()
  for (const response of responses) if (!response.writableEnded || response.writableLength > 0) response.destroy()
}
