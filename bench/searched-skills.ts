import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

const COMMON_WORDS = 60_000
/** Names of files, functions and products: one word in fifty, and most of them in one skill only. */
const RARE_WORDS = 36 ** 5
const RARE_SHARE = 0.02
const MIN_BODY_BYTES = 2_048
const MAX_BODY_BYTES = 8_192

/**
 * Skills of made-up words, like real ones in what an index is sensitive to: sizes, few words in nearly every text, many words in
 * one. Of these, 18,000 have 350,000 different words together.
 * @returns queries of one to four words from the same texts, some misspelt or cut
 */
export async function makeSearchedSkills (root: string, count: number, queries: number): Promise<string[]> {
  const random = createRandom(1)
  const words = Array.from({ length: COMMON_WORDS }, () => makeWord(random))
  // Zipf's law: the n-th word occurs 1/n times as often as the first.
  const word = () => words[Math.floor(COMMON_WORDS ** random()) - 1] ?? ''
  const anyWord = () => random() < RARE_SHARE ? Math.floor(RARE_WORDS * random()).toString(36) : word()
  const text = (length: number) => Array.from({ length }, anyWord).join(' ')
  for (let i = 0; i < count; i++) {
    const name = `${word()}-${word()}-${i}`
    const bytes = MIN_BODY_BYTES + Math.floor(random() * (MAX_BODY_BYTES - MIN_BODY_BYTES))
    mkdirSync(join(root, name), { recursive: true })
    writeFileSync(join(root, name, 'SKILL.md'), `---\nname: ${name}\ndescription: ${text(25)}\n---\n${text(bytes / 5)}`.slice(0, bytes))
    if (i % 50 === 0) await nextTurn()
  }
  return Array.from({ length: queries }, (_, index) => makeQuery(Array.from({ length: 1 + index % 4 }, word).join(' '), index, random))
}

/** Of ten queries, two have a misspelt word, and three end within a word. */
function makeQuery (words: string, index: number, random: () => number): string {
  if (index % 10 < 2) return words.replace(/\w(?=\w{3})/, 'x')
  return index % 10 < 5 ? words.slice(0, Math.max(3, Math.floor(words.length * (0.5 + random() / 2)))) : words
}

function makeWord (random: () => number): string {
  const syllables = ['ka', 're', 'ti', 'mo', 'na', 'lis', 'per', 'con', 'ta', 'der', 'u', 'or', 'str', 'en', 'vi', 'pa']
  return Array.from({ length: 1 + Math.floor(4 * random()) }, () => syllables[Math.floor(syllables.length * random())]).join('')
}

/** Numbers that look random and are the same in every run. */
function createRandom (seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
