import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { Lazy } from './async.ts'

/** Files that one part of the code is read from at the same time, at most. */
const DESCRIPTORS = 32

/**
 * Code that is loaded when somebody first asks for it. Node keeps the failure of an import until the process ends, so that what is tried
 * without free descriptors would never work again. Then the import waits for the next question.
 */
export function lazyCode<T> (load: () => Promise<T>): () => Promise<T> {
  const code = new Lazy(async () => {
    checkDescriptors()
    return await load()
  })
  return () => code.get()
}

/** @throws the system's error when too few files can be opened */
function checkDescriptors (): void {
  const opened: number[] = []
  try {
    while (opened.length < DESCRIPTORS) opened.push(openSync(devNull, 'r'))
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
