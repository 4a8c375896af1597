import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML } from './client.ts'

export const ghSkill: Client = {
  title: 'gh skill publish',
  source: 'cli.github.com/manual/gh_skill_publish',
  read: '2026-11-22',
  group: 'validators',
  aliases: ['gh', 'gh-skill-publish'],
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'name_too_long',
      'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen', 'name_folder_mismatch', 'name_prefixed',
      'description_missing', 'description_too_long', 'allowed_tools_list', 'vendored_copy'
    ]
  }
}
