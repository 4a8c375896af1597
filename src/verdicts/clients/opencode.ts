import { type Client, NO_FRONTMATTER_FIRST, NO_MAIN_FILE, NO_YAML } from './client.ts'

export const opencode: Client = {
  title: 'OpenCode',
  source: 'anomalyco/opencode packages/opencode/src/skill/index.ts',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [
      ...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, ...NO_YAML, 'name_missing', 'name_not_text',
      'description_not_text'
    ],
    changed: ['description_missing']
  }
}
