import { type Client, NO_SKILL } from './client.ts'

export const opencode: Client = {
  title: 'OpenCode',
  source: 'anomalyco/opencode packages/opencode/src/skill/index.ts',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [...NO_SKILL, 'name_missing', 'name_not_text', 'description_not_text'],
    changed: ['description_missing']
  }
}
