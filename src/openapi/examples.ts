/** Texts and bytes of the OpenAPI document. Examples of JSON are next to their schemas. */

/** The beginning of a main file. */
export const DOCUMENT_EXAMPLE = '---\nname: calculator\ndescription: Basic arithmetic\n---\n# Calculator Skill\n'

export const FILE_EXAMPLE = 'def add(a, b):\n    return a + b\n'

export const PROMPT_EXAMPLE = '<available_skills>\n<skill>\n<name>\ncalculator\n</name>\n' +
  '<description>\nBasic arithmetic\n</description>\n' +
  '<location>\n/skills/calculator/files/SKILL.md\n</location>\n</skill>\n</available_skills>'

export const LLMS_TXT_EXAMPLE =
  '# Skills\n\n## Skills\n\n- [calculator](/skills/calculator/files/SKILL.md): Basic arithmetic\n'

export const EVENTS_EXAMPLE = `retry: 3000

id: 8f3a51c09d2e-16

id: 8f3a51c09d2e-17
event: changed
data: {"name":"calculator","revision":"sha256:${'0123456789abcdef'.repeat(4)}"}

: still here

id: 8f3a51c09d2e-18
event: removed
data: {"name":"weather"}

`
