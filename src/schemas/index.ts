import type { TSchema } from '@sinclair/typebox'
import { CatalogEntrySchema, CatalogPageSchema } from './catalog.ts'
import { EndpointsSchema } from './endpoints.ts'
import { HookAnswerSchema, LivenessSchema, ReadinessSchema, NotReadySchema } from './health.ts'
import { ProblemSchema } from './problem.ts'
import { PromptSchema } from './prompt.ts'
import { SkillDocumentSchema, SkillFileSchema, SkillListSchema, SkillManifestSchema } from './skills.ts'
import { ValidationSchema } from './verdicts.ts'
import { DiscoveryIndexSchema, LegacyDiscoveryIndexSchema } from './well-known.ts'

/** Schemas that routes reference, each a component of the OpenAPI document. */
export const sharedSchemas: readonly TSchema[] = [
  ProblemSchema,
  EndpointsSchema,
  LivenessSchema,
  HookAnswerSchema,
  ReadinessSchema,
  NotReadySchema,
  SkillListSchema,
  SkillDocumentSchema,
  SkillFileSchema,
  SkillManifestSchema,
  CatalogEntrySchema,
  CatalogPageSchema,
  ValidationSchema,
  PromptSchema,
  DiscoveryIndexSchema,
  LegacyDiscoveryIndexSchema
]
