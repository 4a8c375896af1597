import { type Client, NAME_RULES, NO_SKILL, when } from './client.ts'

export const anthropicUpload: Client = {
  title: 'Upload to Anthropic',
  source: 'types of @anthropic-ai/sdk 1.12.0, and third-party texts',
  read: '2026-11-22',
  group: 'uploads',
  outcomes: {
    refused: [
      ...NO_SKILL, 'name_missing', 'name_not_text',
      ...NAME_RULES, 'name_reserved_word',
      'description_missing', 'description_too_long', 'description_xml_tag', 'nested_skills',
      ...when('name_has_reserved_word', 'name_folder_mismatch'),
      ...when('too_large_for_anthropic', 'upload_too_large')
    ]
  }
}
