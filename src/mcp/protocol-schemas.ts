/** Most of what the SDK is made of: the schemas of the protocol, and the library that they are written with. */
export { ToolSchema } from '@modelcontextprotocol/core'
