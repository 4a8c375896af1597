import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const openaiUpload: Client = {
  title: 'Upload to OpenAI',
  source: 'types of openai 6.49.0, and third-party texts',
  read: '2026-11-22',
  group: 'uploads',
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'description_missing', 'nested_skills',
      ...when('main_file_not_lower_case', 'main_file_casing'), ...when('too_large_for_openai', 'upload_too_large')
    ]
  }
}
