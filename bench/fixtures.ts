import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A SKILL.md of exactly this many bytes. */
export function skillText (name: string, bytes: number, note = ''): string {
  const head = `---\nname: ${name}\ndescription: ${name} is there to be measured ${note}\n---\n\n# ${name}\n\n`
  return head + 'Lorem ipsum dolor "sit" amet.\n'.repeat(Math.ceil(bytes / 30)).slice(0, bytes - head.length)
}

/** `count` skills, each with a SKILL.md of 4 KiB and `files` more files of half a KiB, half of them in a folder. */
export function makeSkills (root: string, count: number, files: number): string[] {
  const names = Array.from({ length: count }, (_, index) => `skill-${String(index).padStart(5, '0')}`)
  for (const name of names) {
    const folder = join(root, name)
    mkdirSync(join(folder, 'docs'), { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), skillText(name, 4096))
    for (let i = 0; i < files; i++) writeFileSync(join(folder, i % 2 === 0 ? `file-${i}.md` : `docs/file-${i}.md`), 'x'.repeat(512))
  }
  return names
}
