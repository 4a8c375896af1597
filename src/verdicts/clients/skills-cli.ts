import { type Client, NO_SKILL } from './client.ts'

export const skillsCli: Client = {
  title: 'skills CLI',
  source: 'npm skills 1.7.4 dist/cli.mjs',
  read: '2026-11-22',
  group: 'agents',
  outcomes: {
    not_loaded: [...NO_SKILL, 'name_missing', 'name_not_text', 'description_missing', 'description_not_text'],
    warned: ['nested_skills', 'discovery_internal']
  }
}
