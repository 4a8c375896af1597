import { type Client, NAME_RULES, NO_SKILL } from './client.ts'

export const spec: Client = {
  title: 'Agent Skills format',
  source: 'agentskills/agentskills@69ef37e docs/specification.mdx',
  read: '2026-11-22',
  group: 'validators',
  outcomes: {
    refused: [
      ...NO_SKILL, 'main_file_too_large', 'frontmatter_too_large', 'name_missing', 'name_not_text', ...NAME_RULES,
      'name_folder_mismatch', 'description_missing', 'description_not_text', 'description_too_long',
      'compatibility_not_text', 'compatibility_too_long', 'metadata_not_mapping'
    ],
    warned: [
      'main_file_ambiguous', 'license_not_text', 'compatibility_empty', 'metadata_not_text', 'allowed_tools_not_text',
      'allowed_tools_list', 'body_empty', 'body_link_missing', 'body_link_outside'
    ]
  }
}
