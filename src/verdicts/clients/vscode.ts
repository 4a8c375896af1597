import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const vscode: Client = {
  title: 'VS Code',
  source: 'microsoft/vscode promptSyntax/languageProviders/promptValidator.ts',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [...NO_MAIN_FILE, 'main_file_casing'],
    warned: [
      ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'name_not_text', 'name_invalid_characters',
      'name_folder_mismatch', 'name_prefixed', 'description_missing', 'metadata_not_mapping', 'allowed_tools_list',
      'body_link_missing',
      ...when('name_differs_from_folder', 'name_too_long', 'name_edge_hyphen', 'name_double_hyphen'),
      ...when('field_unknown_to_vscode', 'unknown_fields')
    ]
  }
}
