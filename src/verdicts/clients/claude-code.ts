import { type Client, NAME_RULES, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

/** Claude Code uses the folder name and the body if the frontmatter lacks a name or a description. */
export const claudeCode: Client = {
  title: 'Claude Code',
  source: 'anthropics/claude-code@5cfc0a1 CHANGELOG.md, code.claude.com/docs/en/skills',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [...NO_MAIN_FILE, 'main_file_casing', 'nobody_can_invoke'],
    cut: ['when_to_use_too_long', ...when('listing_too_long', 'description_too_long')],
    changed: [
      ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'name_not_text', 'name_folder_mismatch', 'name_prefixed',
      'description_missing',
      ...when('name_differs_from_folder',
        ...NAME_RULES)
    ]
  }
}
