import { type Client, NO_FRONTMATTER, NO_MAIN_FILE, NO_YAML, when } from './client.ts'

export const goose: Client = {
  title: 'goose',
  source: 'block/goose@013ab84 crates/goose/src/skills/mod.rs, src/sources.rs',
  read: '2026-11-28',
  group: 'agents',
  outcomes: {
    not_loaded: [
      ...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER, ...NO_YAML, 'name_missing', 'metadata_not_mapping',
      // Other scalars, such as numbers, are read as text.
      ...when('field_is_no_scalar', 'name_not_text', 'description_not_text'),
      ...when('name_has_slash', 'name_invalid_characters')
    ],
    cut: ['nested_skills']
  }
}
