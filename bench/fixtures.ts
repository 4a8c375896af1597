import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Skills that share one linked file: ext4 allows 65,000 names for a file. */
const SKILLS_A_LINK = 5_000

/** Skills written before the event loop runs, so that a signal can interrupt. */
const AT_A_STRETCH = 50

/** A SKILL.md of exactly this many bytes. */
export function skillText (name: string, bytes: number, note = ''): string {
  const head = `---\nname: ${name}\ndescription: ${name} is there to be measured ${note}\n---\n\n# ${name}\n\n`
  return head + 'Lorem ipsum dolor "sit" amet.\n'.repeat(Math.ceil(bytes / 30)).slice(0, bytes - head.length)
}

export interface SkillsOptions {
  /** Makes the files beside the main file hard links of one file: a third of the time. They must not be written to. */
  readonly linked?: boolean
}

/** `count` skills, each with a SKILL.md of 4 KiB and `files` more files of half a KiB, half of them in a folder. */
export async function makeSkills (root: string, count: number, files: number, { linked = false }: SkillsOptions = {}): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `skill-${String(index).padStart(5, '0')}`)
  let written = ''
  for (const [index, name] of names.entries()) {
    const folder = join(root, name)
    mkdirSync(join(folder, 'docs'), { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), skillText(name, 4096))
    for (let i = 0; i < files; i++) {
      const file = join(folder, i % 2 === 0 ? `file-${i}.md` : `docs/file-${i}.md`)
      if (linked && (i > 0 || index % SKILLS_A_LINK > 0)) {
        linkSync(written, file)
      } else {
        writeFileSync(file, 'x'.repeat(512))
        written = file
      }
    }
    if (index % AT_A_STRETCH === 0) await nextTurn()
  }
  return names
}
