import { type Client, NO_FRONTMATTER, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const skillsRef: Client = {
  title: 'skills-ref, the reference validator',
  source: 'agentskills/agentskills@00d5a46 skills-ref 0.1.0, and the documents of strictyaml 1.6',
  read: '2026-11-28',
  group: 'validators',
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, ...NO_FRONTMATTER, 'frontmatter_not_first', ...NO_YAML, 'frontmatter_flow_style',
      'name_missing', 'name_too_long', 'name_edge_hyphen', 'name_double_hyphen', 'name_folder_mismatch',
      'name_prefixed', 'description_missing', 'description_too_long', 'compatibility_too_long', 'unknown_fields',
      ...when('main_file_not_lower_case', 'main_file_casing'),
      // Letters of any alphabet are allowed.
      ...when('name_not_letters', 'name_invalid_characters'),
      ...when('name_differs_from_folder', 'name_invalid_characters', 'name_not_text'),
      // Other scalars, such as numbers, are read as text.
      ...when('field_is_no_scalar',
        'name_not_text', 'description_not_text', 'compatibility_not_text', 'allowed_tools_not_text')
    ]
  }
}
