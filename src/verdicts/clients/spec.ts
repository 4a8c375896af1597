import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML } from './client.ts'

export const spec: Client = {
  title: 'Agent Skills format',
  source: 'agentskills/agentskills@69ef37e docs/specification.mdx',
  read: '2026-11-22',
  group: 'validators',
  aliases: ['format', 'agent-skills'],
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, 'main_file_casing', 'main_file_too_large', ...NO_FRONTMATTER_FIRST, 'frontmatter_too_large',
      ...NO_YAML, 'name_missing', 'name_not_text', 'name_too_long', 'name_invalid_characters', 'name_edge_hyphen',
      'name_double_hyphen', 'name_folder_mismatch', 'description_missing', 'description_not_text',
      'description_too_long', 'compatibility_not_text', 'compatibility_too_long', 'metadata_not_mapping'
    ],
    warned: [
      'main_file_ambiguous', 'license_not_text', 'compatibility_empty', 'metadata_not_text', 'allowed_tools_not_text',
      'allowed_tools_list', 'body_empty', 'body_link_missing', 'body_link_outside'
    ]
  }
}
