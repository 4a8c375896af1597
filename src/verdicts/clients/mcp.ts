import { type Client, UNUSABLE } from './client.ts'

export const mcp: Client = {
  title: 'Skills over MCP, as this service lists them',
  source: 'npm @modelcontextprotocol/server 2.4.0',
  read: '2026-11-22',
  outcomes: {
    not_loaded: [
      ...UNUSABLE, 'main_file_casing', 'compatibility_not_text', 'compatibility_empty', 'compatibility_too_long',
      'metadata_not_mapping', 'metadata_not_text', 'mcp_refused', 'mcp_file_too_large', 'mcp_too_many_files'
    ],
    warned: ['mcp_limits_exceeded']
  }
}
