import { type Client, NAME_RULES, NO_SKILL } from './client.ts'

export const ghSkill: Client = {
  title: 'gh skill publish',
  source: 'cli.github.com/manual/gh_skill_publish',
  read: '2026-11-22',
  group: 'validators',
  outcomes: {
    refused: [
      ...NO_SKILL, 'name_missing', ...NAME_RULES, 'name_folder_mismatch', 'name_prefixed', 'description_missing',
      'description_too_long', 'allowed_tools_list', 'vendored_copy'
    ]
  }
}
