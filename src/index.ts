/**
 * The library entry: the catalog without HTTP, the tools, and the HTTP service as a value. Interfaces of the source
 * documents keep their names.
 */
export { SkillManager, createSkillManager } from './core/skill-manager.ts'
export type { SkillManagerOptions } from './core/skill-manager.ts'
export type { ChangeFeed, FeedEvent } from './core/events/change-feed.ts'
export { parseSkillFile } from './library/parse-skill-file.ts'
export type { ParsedSkillFile } from './library/parse-skill-file.ts'
export { createSkillTool } from './library/create-skill-tool.ts'
export type { NeovateFailure, NeovateSuccess } from './tools/neovate-skill.ts'
export type { NeovateSkillTool, SkillBodySource } from './library/create-skill-tool.ts'

export { SkillError } from './core/shared/errors.ts'
export type { SkillErrorCode } from './core/shared/errors.ts'
export type { ServableFile } from './core/read/file-cache.ts'
export type { FileContent } from './core/read/file-content.ts'
export type { MainFilePreference } from './core/format/main-files.ts'
export type { View } from './core/view.ts'
export type {
  CatalogSkill, Finding, FindingSeverity, Frontmatter, Manifest, ManifestFile, Skill, SkillMetadata, SkillType
} from './core/shared/skill.ts'
export type { DecodedText, TextEncoding } from './core/read/decode.ts'

export { createToolRegistry } from './tools/registry.ts'
export type { ToolRegistry } from './tools/registry.ts'
export { createToolCallHandler } from './tools/calls/tool-call.ts'
export type { ToolCallAnswer, ToolCallContext, ToolCallHandler } from './tools/calls/tool-call.ts'
export { toolDefinitions } from './tools/tool-definitions.ts'
export type { ToolDefinitionOptions } from './tools/tool-definitions.ts'
export { ToolOutcome } from './tools/tool.ts'
export { createTools } from './tools/tools.ts'
export type { Tool, ToolArguments, ToolExample, ToolParameters, Toolset } from './tools/tool.ts'
export type {
  WaveErrorDetails as SkillErrorDetails, WaveErrorType as SkillErrorType, WaveToolResult as ToolResult
} from './tools/wave-skill.ts'

export { statusOf } from './http/readiness.ts'
export type { SkillStatus } from './http/readiness.ts'
export { buildApp } from './app.ts'
export type { AppOptions } from './app.ts'
