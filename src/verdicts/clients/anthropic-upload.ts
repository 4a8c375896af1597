import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const anthropicUpload: Client = {
  title: 'Upload to Anthropic',
  source: 'types of @anthropic-ai/sdk 1.12.0, and third-party texts',
  read: '2026-11-22',
  group: 'uploads',
  aliases: ['anthropic'],
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'name_not_text',
      'name_too_long', 'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen', 'name_reserved_word',
      'description_missing', 'description_too_long', 'description_xml_tag', 'nested_skills',
      ...when('name_has_reserved_word', 'name_folder_mismatch'),
      ...when('too_large_for_anthropic', 'upload_too_large')
    ]
  }
}
