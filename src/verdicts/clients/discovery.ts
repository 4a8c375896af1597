import { type Client, NO_YAML, UNUSABLE } from './client.ts'

const NOT_LISTED =
  [...UNUSABLE, ...NO_YAML, 'main_file_ambiguous', 'discovery_frontmatter_differs', 'discovery_path_unsafe'] as const

/** The two indexes of this service, with the rules of the clients of each. */
export const discovery010: Client = {
  title: 'Well-known index 0.1.0',
  source: 'npm skills 1.5.18',
  read: '2026-11-22',
  group: 'indexes',
  outcomes: {
    not_loaded: [...NOT_LISTED, 'discovery_path_not_plain'],
    cut: ['discovery_file_large'],
    warned: ['discovery_internal']
  }
}

export const discovery020: Client = {
  title: 'Well-known index 0.2.0',
  source: 'npm skills 1.7.4',
  read: '2026-11-22',
  group: 'indexes',
  outcomes: {
    not_loaded: [...NOT_LISTED, 'discovery_description_too_long', 'discovery_archive_too_large'],
    warned: ['discovery_internal']
  }
}
