/** The largest part of the SDK: the schemas of the protocol, and the library that they are written with. */
export { ToolSchema } from '@modelcontextprotocol/core'
