import type { Disk } from '../../src/core/read/disk.ts'
import { RefusedError } from '../../src/core/read/refused.ts'
import { openInside } from '../../src/core/read/open-inside.ts'

/** What reading a file came to: its text, or the refusal. */
export async function readInside (disk: Disk, folder: string, path: string, limit = 1_000): Promise<string> {
  try {
    const file = await openInside({ disk, folder, path }, limit)
    try {
      return (await file.readAll()).toString()
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof RefusedError) return `refused: ${error.refusal}`
    throw error
  }
}
