import t from 'tap'
import { describeSkill } from '../../src/core/read-skill.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { createValidator } from '../../src/verdicts/entry.ts'
import { TARGET_NAMES } from '../../src/verdicts/targets.ts'

const SKILLS = 16

t.test('K80: many large skills that are validated at the same time leave turns of the event loop to others', async (t) => {
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
  const validate = createValidator()
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await Promise.all(states.map((state) => validate(state)))
  isDone = true
  // On a fast machine a few of them fit into one slice of time.
  t.ok(turns >= SKILLS / 4, `${turns} turns`)
  const before = turns
  await Promise.all(states.map((state) => validate(state)))
  t.equal(turns, before, 'what is known takes none')
  await Promise.all(states.map((state) => validate(state, TARGET_NAMES)))
  t.equal(turns, before, 'nor does it for chosen targets')
})
