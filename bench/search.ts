import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LongRun } from '../scripts/long-run.ts'
import { makeSkillsInWords, QUERIES, QUESTIONS } from './questions.ts'
import { startSkillserve, watching } from './servers.ts'
import { type Row, rowOf } from './table.ts'

const BUNDLED = fileURLToPath(new URL('../skills/', import.meta.url))

/** How long a search takes, and whether plain questions find the obvious skill among the first three. */
export async function measureSearch (run: LongRun, folder: string): Promise<Row[]> {
  run.part('search: the skills are written')
  const root = join(folder, 'words')
  const count = await makeSkillsInWords(root)
  const server = await startSkillserve(run, [BUNDLED, root], { log: join(folder, 'search.log') })
  await watching(server)
  const ask = async (text: string): Promise<readonly string[]> => {
    const response = await fetch(`${server.url}/catalog?limit=3&q=${encodeURIComponent(text)}`)
    if (!response.ok) throw new Error(`${response.status} for ${text}`)
    const { skills } = await response.json() as { readonly skills: ReadonlyArray<{ readonly name: string }> }
    return skills.map(({ name }) => name)
  }
  const missed: string[] = []
  for (const [text, skill] of QUESTIONS) if (!(await ask(text)).includes(skill)) missed.push(text)
  run.part(`search: ${QUERIES.length} queries`)
  const times: number[] = []
  for (const query of QUERIES) {
    const begun = performance.now()
    await ask(query)
    times.push(performance.now() - begun)
  }
  await server.stop()
  const p99 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? NaN
  const share = (QUESTIONS.length - missed.length) / QUESTIONS.length
  return [
    rowOf({ what: `search among ${count} skills, p99`, values: [p99], atMost: 50, unit: ' ms', note: 'over HTTP' }),
    rowOf({ what: 'questions answered in the first 3', values: [share], atLeast: 0.9, note: missed.join(' · ') })
  ]
}
