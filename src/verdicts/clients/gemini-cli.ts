import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const geminiCli: Client = {
  title: 'Gemini CLI',
  source: 'google-gemini/gemini-cli@5411f11 packages/core/src/skills/skillLoader.ts',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, 'name_missing', 'description_missing'],
    // Without YAML, or without both texts, Gemini CLI reads lines that begin with `name:` and `description:`.
    changed: [
      ...NO_YAML, 'name_not_text', 'description_not_text', ...when('name_not_for_paths', 'name_invalid_characters')
    ],
    warned: ['description_block_scalar', 'description_not_one_line']
  }
}
