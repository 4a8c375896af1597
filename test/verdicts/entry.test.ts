import t from 'tap'
import { describeSkill } from '../../src/core/read-skill.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { Finding } from '../../src/core/shared/skill.ts'
import { createJudge } from '../../src/verdicts/entry.ts'
import { TARGET_NAMES } from '../../src/verdicts/targets.ts'

const SKILLS = 16

t.test('K80: many large skills that are judged at the same time leave turns of the event loop to others', async (t) => {
  const states = Array.from({ length: SKILLS }, (_, index) => {
    const name = `s${index}`
    const mainFile = new FileContent(
      Buffer.from(`---\nname: ${name}\ndescription: d\n---\n`.padEnd(MAX_MAIN_FILE_BYTES, 'a text '))
    )
    const skill = describeSkill({
      name, type: 'project', path: `/skills/${name}`, realPath: `/skills/${name}`, linked: false
    }, { mainFiles: ['SKILL.md'], main: { name: 'SKILL.md', content: mainFile } })
    return { skill, manifest: undefined, mainFile, fileFindings: [] }
  })
  const judge = createJudge([])
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await Promise.all(states.map((state) => judge(state)))
  isDone = true
  // On a fast machine a few of them fit into one slice of time.
  t.ok(turns >= SKILLS / 4, `${turns} turns`)
  const before = turns
  await Promise.all(states.map((state) => judge(state)))
  t.equal(turns, before, 'what is known takes none')
  await Promise.all(states.map((state) => judge(state, TARGET_NAMES)))
  t.equal(turns, before, 'nor does it for chosen targets')
})

t.test('K80: the judgement of a state is kept while its manifest is, though its main file has left the memory and ' +
  'was read again', async (t) => {
  const text = (description: string): Buffer => Buffer.from(`---\nname: s\ndescription: ${description}\n---\n`)
  const stateOf = (bytes: Buffer) => {
    const mainFile = new FileContent(bytes)
    const skill = describeSkill({
      name: 's', type: 'project', path: '/skills/s', realPath: '/skills/s', linked: false
    }, { mainFiles: ['SKILL.md'], main: { name: 'SKILL.md', content: mainFile } })
    return { skill, manifest: { skill_name: 's', revision: 'r', files: [] }, mainFile, fileFindings: [] }
  }
  const judge = createJudge([])
  const state = stateOf(text('a'))
  const { tokens } = await judge(state)
  const known = await judge(state)
  t.equal(await judge({ ...state, mainFile: new FileContent(text('a')) }), known)
  const other = stateOf(text('much more than before'))
  t.not(
    (await judge({ ...other, manifest: state.manifest, fileFindings: state.fileFindings })).tokens.listed,
    tokens.listed, 'another index entry is judged'
  )
  const fileFindings: readonly Finding[] = [{ code: 'file_program', severity: 'info', message: 'm', fix: 'f' }]
  for (const change of [{ mainFile: new FileContent(text('b')) }, { skill: { ...state.skill } }, { fileFindings }]) {
    await judge(state)
    const before = await judge(state)
    t.equal(await judge(state), before)
    t.match((await judge(state, ['codex'])).targets, [{ target: 'codex' }])
    t.not(await judge({ ...state, ...change }), before, `and so is another ${Object.keys(change).join()}`)
  }
  t.ok((await judge({ ...state, fileFindings })).findings.some(({ code }) => code === 'file_program'))
})
