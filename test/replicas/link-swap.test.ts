import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { skillText, until } from '../helper/skills.ts'

const SWAPS = 25
/** Answers between two swaps, at least. */
const ANSWERS = 12

/** A checkout, as git-sync makes one: all files of the skill `a` hold its number. */
function checkOut (folder: string, number: number): string {
  const tree = join(folder, 'worktrees', String(number))
  for (const path of ['a/notes', 'b']) mkdirSync(join(tree, path), { recursive: true })
  writeFileSync(join(tree, 'a/SKILL.md'), skillText('a', `number ${number};\n`))
  for (const file of ['one.md', 'notes/two.md']) writeFileSync(join(tree, 'a', file), `number ${number};\n`)
  writeFileSync(join(tree, 'b/SKILL.md'), skillText('b'))
  return tree
}

/** Turns the link to a tree in one step, as git-sync does. */
function turn (folder: string, tree: string): void {
  symlinkSync(tree, join(folder, 'next'))
  renameSync(join(folder, 'next'), join(folder, 'current'))
}

function numbersIn (text: string): readonly string[] {
  return [...new Set(text.match(/number \d+;/g))]
}

t.test('K59: while a link is turned to one checkout after another, no skill is missing, and no answer mixes two of them', async (t) => {
  const folder = t.testdir({ worktrees: {} })
  let tree = checkOut(folder, 0)
  turn(folder, tree)
  const { url } = await startProcess(t, { args: [join(folder, 'current')] })
  let answers = 0
  const stopped = new AbortController()
  const wrong: string[] = []

  async function get (target: string): Promise<string> {
    const response = await fetch(url + target)
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
    answers++
    if (response.status !== 200) wrong.push(`${target}: ${response.status} ${text.slice(0, 200)}`)
    return text
  }

  const readers = [
    async () => {
      const list = await get('/skills')
      if (list !== '{"skills":["a","b"]}') wrong.push(list)
      await get('/skills/b')
    },
    async () => {
      const found = numbersIn(await get('/skills/a/archive.zip'))
      if (found.length !== 1) wrong.push(`an archive of ${found.join(' and ')}`)
    },
    async () => {
      const { revision } = JSON.parse(await get('/skills/a/files')) as { readonly revision: string }
      const texts = await Promise.all(['/skills/a', '/skills/a/files/one.md', '/skills/a/files/notes/two.md'].map((target) => get(`${target}?revision=${revision}`)))
      const found = numbersIn(texts.join(''))
      if (found.length !== 1) wrong.push(`a revision of ${found.join(' and ')}`)
    }
  ].map(async (read) => { while (!stopped.signal.aborted) await read() })

  for (let number = 1; number <= SWAPS; number++) {
    const before = answers
    const old = tree
    tree = checkOut(folder, number)
    turn(folder, tree)
    rmSync(old, { recursive: true })
    await until(() => answers >= before + ANSWERS || wrong.length > 0)
  }
  stopped.abort()
  await Promise.all(readers)
  t.strictSame(wrong, [])
  t.match(await get('/skills/a'), `number ${SWAPS};`)
})
