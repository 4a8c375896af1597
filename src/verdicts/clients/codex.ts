import { type Client, NO_SKILL, when } from './client.ts'

export const codex: Client = {
  title: 'Codex',
  source: 'openai/codex@033d1d0 codex-rs/core-skills/src/loader.rs',
  read: '2026-11-28',
  group: 'agents',
  outcomes: {
    not_loaded: [
      ...NO_SKILL, 'name_too_long',
      'description_missing', 'description_too_long', 'metadata_not_mapping',
      // Other scalars, such as numbers, are read as text.
      ...when('field_is_no_scalar', 'name_not_text', 'description_not_text')
    ],
    changed: [
      'name_missing', ...when('description_has_line_break', 'description_block_scalar', 'description_not_one_line')
    ]
  }
}
