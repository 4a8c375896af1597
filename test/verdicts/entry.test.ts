import t from 'tap'
import { describeSkill } from '../../src/core/read-skill.ts'
import { FileContent } from '../../src/core/read/file-content.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { Finding } from '../../src/core/shared/skill.ts'
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

t.test('K80: another state of a skill is validated anew', async (t) => {
  const mainFile = new FileContent(Buffer.from('---\nname: s\ndescription: d\n---\n[a](b.md)\n'))
  const skill = describeSkill({
    name: 's', type: 'project', path: '/skills/s', realPath: '/skills/s', linked: false
  }, { mainFiles: ['SKILL.md'], main: { name: 'SKILL.md', content: mainFile } })
  const state = { skill, manifest: { skill_name: 's', revision: 'r', files: [] }, mainFile, fileFindings: [] }
  const validate = createValidator()
  const codes = async (change: object): Promise<readonly string[]> =>
    (await validate({ ...state, ...change })).findings.map(({ code }) => code)
      .filter((code) => code === 'body_link_missing' || code === 'file_program')
  t.strictSame(await codes({}), ['body_link_missing'])
  const file = { path: 'b.md', size_bytes: 1, media_type: 'text/markdown', digest: 'sha256:0' }
  t.strictSame(await codes({ manifest: { ...state.manifest, files: [file] } }), [])
  const fileFindings: readonly Finding[] = [{ code: 'file_program', severity: 'info', message: 'm', fix: 'f' }]
  t.strictSame(await codes({ fileFindings, manifest: { ...state.manifest } }), ['file_program', 'body_link_missing'])
})
