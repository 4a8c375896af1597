import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import { isUsable } from '../../core/format/findings.ts'
import { SkillError } from '../../core/shared/errors.ts'
import type { View } from '../../core/view.ts'
import { loadSkill } from '../../tools/load-skill.ts'
import { MCP_PAGE_ENTRIES } from '../limits.ts'
import { McpFault } from '../operation.ts'
import { type Page, readPage } from './paging.ts'

const TASK = { name: 'task', description: 'What to do with the skill; comes after its instructions', required: false }

/** Lists one page of prompts: one prompt for each skill that models are offered. */
export async function listPrompts (skills: View, cursor: string | undefined): Promise<Page<Prompt>> {
  return await readPage(skills.scope, await skills.list(), cursor, async (name) => {
    const skill = await skills.find(name)
    if (skill === undefined || !isUsable(skill)) return undefined
    return { name, description: skill.metadata.description, arguments: [TASK] }
  }, (prompts) => prompts.length >= MCP_PAGE_ENTRIES)
}

/** Returns a skill's document as a message of the user, followed by the task if there is one. */
export async function getPrompt (
  skills: View, name: string, task: string | undefined
): Promise<GetPromptResult> {
  const { skill, text: document } = await skills.read(name, loadSkill).catch((error: unknown) => {
    const isMissing = error instanceof SkillError && (error.kind === 'missing' || error.kind === 'invalid')
    throw isMissing ? noPrompt() : error
  })
  if (!isUsable(skill)) throw noPrompt()
  const texts = [document, ...task === undefined ? [] : [task]]
  return {
    description: skill.metadata.description,
    messages: texts.map((text) => ({ role: 'user', content: { type: 'text', text } }))
  }
}

function noPrompt (): McpFault {
  return new McpFault('missing', 'There is no such prompt; prompts/list has the names')
}
