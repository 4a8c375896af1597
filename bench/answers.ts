import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench } from './bench.ts'
import { startSkillserve } from './process.ts'
import { makeSkillsInWords, QUESTIONS } from './questions.ts'
import { watching } from './readiness.ts'
import type { Row } from './table.ts'

/** The obvious skill must be among the first FIRST results, for this share of the questions. */
const FIRST = 3
const SHARE = 0.9

const BUNDLED = fileURLToPath(new URL('../skills/', import.meta.url))

/** Measures whether plain questions find their obvious skill. */
export async function measureAnswers ({ run, folder }: Bench): Promise<Row[]> {
  run.part('plain questions: writing the skills')
  const root = join(folder, 'words')
  const count = await makeSkillsInWords(root)
  const server = await startSkillserve(run, [BUNDLED, root], { log: join(folder, 'answers.log') })
  await watching(server)
  run.part('plain questions: the search index')
  const missed: string[] = []
  for (const { text, skill } of QUESTIONS) {
    const response = await fetch(`${server.url}/catalog?limit=${FIRST}&q=${encodeURIComponent(text)}`)
    if (!response.ok) throw new Error(`${response.status} for ${text}`)
    const { skills } = await response.json() as { readonly skills: ReadonlyArray<{ readonly name: string }> }
    if (!skills.some(({ name }) => name === skill)) missed.push(text)
  }
  await server.stop()
  const found = QUESTIONS.length - missed.length
  return [{
    what: `plain questions with the obvious skill among the first ${FIRST}`,
    against: `${count} skills in words`,
    target: '≥ 9 of 10',
    measured: `${found} of ${QUESTIONS.length}`,
    note: missed.length === 0 ? 'see questions.ts' : `not: ${missed.join(' · ')}`,
    pass: found >= SHARE * QUESTIONS.length
  }]
}
