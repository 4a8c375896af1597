import { readdirSync } from 'node:fs'
import t from 'tap'

const TEST = new URL('..', import.meta.url)

/** Files that run in processes of their own (`.taprc`), since they take long. */
export const ALONE = /^(?:browser|process|reload)\.test\.ts$/

/**
 * Runs the test files in these folders of `test`, one after the other, in this process: loading tap and the service
 * takes longer than most files do. Each file has a folder of its own for `t.testdir`.
 */
export async function runFolders (...folders: readonly string[]): Promise<void> {
  const base = t.testdirName
  for (const folder of folders) {
    const names = readdirSync(new URL(folder, TEST)).filter((name) => name.endsWith('.test.ts') && !ALONE.test(name))
    for (const name of names.sort()) {
      const file = `${folder}/${name}`
      t.testdirName = `${base}-${file.replace(/\W/g, '-')}`
      await import(new URL(file, TEST).href)
    }
  }
}
