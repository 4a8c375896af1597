import { resolve } from 'node:path'
import {
  createSkillManager, createToolCallHandler, createToolRegistry, createTools, parseSkillFile, SkillError
} from 'skillserve'

const skills = createSkillManager({ projectRoots: [resolve('skills')] })
await skills.initialize()

console.log((await skills.loadSkill('calculator'))?.metadata.description)
console.log(parseSkillFile('skills/calculator/SKILL.md').isValid)

const registry = createToolRegistry(createTools())
const handleToolCall = createToolCallHandler({ registry, log: { info () {} } })
const answer = await handleToolCall({ name: 'list_skills', arguments: {} }, { skills, requestId: 'example' })
if (answer.kind === 'answer') console.log(answer.json)

try {
  await skills.read('calculator', (skill) => skill.file('../weather/SKILL.md'))
} catch (error) {
  if (error instanceof SkillError) console.log(error.code)
}

await skills.close()
