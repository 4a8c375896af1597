/**
 * The library entry: the catalogue without HTTP, the tools, and the HTTP service as a value. The interfaces of the
 * source documents have the source documents' names (K33).
 */
export { SkillManager, createSkillManager } from './core/skill-manager.ts'
export type { SkillManagerOptions, SkillManagerStatus } from './core/skill-manager.ts'
export { createChangeFeed } from './core/change-feed.ts'
export type { ChangeFeed, ChangeFeedOptions, FeedEvent } from './core/change-feed.ts'
export { parseSkillFile } from './core/parse-skill-file.ts'
export type { ParsedSkillFile } from './core/parse-skill-file.ts'
export { createSkillTool } from './tools/create-skill-tool.ts'
export type { NeovateFailure, NeovateSkillTool, NeovateSuccess, SkillBodySource } from './tools/create-skill-tool.ts'

export { SkillError } from './core/errors.ts'
export type { SkillErrorCode } from './core/errors.ts'
export type { CatalogueChange } from './core/catalogue.ts'
export type { ServableFile } from './core/content-store.ts'
export type { FileContent } from './core/file-content.ts'
export type { Manifest, ManifestFile } from './core/manifest.ts'
export type { Awaitable, MainFilePreference, SkillSource } from './core/skill-source.ts'
export type { CatalogueSkill, Finding, FindingSeverity, Frontmatter, Skill, SkillMetadata, SkillType } from './core/skill.ts'
export type { DecodedText, TextEncoding } from './core/text.ts'

export { createToolRegistry, createTools } from './tools/registry.ts'
export type { ToolRegistry } from './tools/registry.ts'
export { createToolCallHandler } from './tools/tool-call.ts'
export type { ToolCallAnswer, ToolCallHandler } from './tools/tool-call.ts'
export { toolDefinitions } from './tools/tool-definitions.ts'
export { ToolOutcome } from './tools/tool.ts'
export type { Tool, ToolArguments, ToolParameters, Toolset } from './tools/tool.ts'
export type { WaveErrorDetails as SkillErrorDetails, WaveErrorType as SkillErrorType, WaveToolResult as ToolResult } from './tools/wave-messages.ts'

export { buildApp } from './app.ts'
export type { AppOptions } from './app.ts'
