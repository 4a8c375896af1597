import type { SkippedEntry } from '../../core/roots/scan-root.ts'
import { describeSkipped } from '../../core/roots/skipped.ts'
import type { CommandContext } from '../command.ts'

/** Entries that are left out and named. */
const MAX_SKIPPED_LINES = 10

/** Names on standard error what a command leaves out. */
export function warnSkipped (sentences: ReadonlySet<string>, { warn }: Pick<CommandContext, 'warn'>): void {
  for (const sentence of [...sentences].slice(0, MAX_SKIPPED_LINES)) warn(sentence)
  if (sentences.size > MAX_SKIPPED_LINES) warn(`${sentences.size - MAX_SKIPPED_LINES} more are left out`)
}

/**
 * Names what a command has left out, when the command is done or has failed.
 * @param remedy see `describeSkipped`
 */
export async function namingSkipped<T> (context: Pick<CommandContext, 'warn'>, use: (onSkipped: (entries: readonly SkippedEntry[]) => void) => Promise<T>, remedy?: (target: string) => string): Promise<T> {
  const sentences = new Set<string>()
  try {
    return await use((entries) => { for (const sentence of entries.flatMap((entry) => describeSkipped(entry, remedy))) sentences.add(sentence) })
  } finally {
    warnSkipped(sentences, context)
  }
}
