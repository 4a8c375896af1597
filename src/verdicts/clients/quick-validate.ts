import { type Client, NAME_RULES, NO_FRONTMATTER, NO_MAIN_FILE, NO_YAML } from './client.ts'

export const quickValidate: Client = {
  title: "quick_validate of Anthropic's skill-creator",
  source: 'anthropics/skills@049d5f2 skills/skill-creator/scripts, PyYAML 6',
  read: '2026-11-28',
  group: 'validators',
  outcomes: {
    refused: [
      ...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER, 'frontmatter_not_first', ...NO_YAML, 'name_missing',
      'name_not_text', ...NAME_RULES, 'description_missing', 'description_not_text', 'description_too_long',
      'description_xml_tag', 'description_angle_bracket', 'compatibility_not_text', 'compatibility_too_long',
      'unknown_fields'
    ]
  }
}
