import type { FastifyBaseLogger } from 'fastify'
import type { SkillManagerOptions } from '../core/skill-manager.ts'
import type { SkillService } from '../core/skill-source.ts'
import { SkillViews } from '../core/views/skill-views.ts'
import { Access, type AccessOptions } from './access.ts'

/** Skills behind an access file. */
export interface GuardedSkills {
  /** What the process starts and stops. */
  readonly skills: SkillViews
  /** What a door gets that does not ask who is there: nothing. */
  readonly service: SkillService
  readonly access: Access
}

/**
 * Opens the access file, and the folders of skills one by one.
 * @throws ConfigError of one line when the file cannot be used
 */
export async function openGuarded (options: SkillManagerOptions & { readonly log: FastifyBaseLogger }, access: Omit<AccessOptions, 'skills' | 'log'>): Promise<GuardedSkills> {
  const skills = new SkillViews(options)
  const opened = await Access.open({ ...access, skills, log: options.log })
  return { skills, service: opened.nothing, access: opened }
}
