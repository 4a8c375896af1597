import { resolve } from 'node:path'
import { Policy } from '../../access/policy.ts'
import { describeAll, describeCaller, describeSkill } from '../../access/report.ts'
import { readTextFile } from '../../operator/yaml-file.ts'
import { ROOT_PROBLEMS } from '../../core/roots/root.ts'
import { counted } from '../../core/shared/text.ts'
import { Shutdown } from '../../http/shutdown.ts'
import { openSkills } from '../../open-skills.ts'
import { inColumns } from '../columns.ts'
import type { RunCommand } from '../command.ts'
import { fetchSources, readConfig } from '../folders.ts'

interface Options {
  readonly as?: string
  readonly skill?: string
}

/** Prints who sees which skills by an access file, without a running service. */
export const run: RunCommand<Options> = async ({ positionals: [name = '', ...positionals], options }, context) => {
  const { cwd, env, print, warn } = context
  const { as: caller, skill } = options
  const accessFile = resolve(cwd, name)
  const config = { ...await readConfig({ positionals, options }, context), accessFile }
  const shutdown = new Shutdown()
  try {
    const unguarded = { ...config, lockFile: undefined, trustFile: undefined }
    const { roots, skills } = await openSkills(unguarded, { env, shutdown, watcher: false })
    const policy = new Policy(accessFile, await readTextFile(accessFile), skills.rootNames, config.publicUrl)
    await fetchSources(roots.sources, context)
    await skills.initialize()
    for (const { name, state } of skills.roots.map(({ status }) => status)) {
      if (state !== 'ok') warn(`folder "${name}" ${ROOT_PROBLEMS[state]}; its skills are unknown`)
    }
    if (caller !== undefined) {
      const { summary, rows } = describeCaller(policy, skills, caller)
      print(`${summary}\n${inColumns(rows)}`)
    } else if (skill !== undefined) {
      print(`${describeSkill(policy, skills, skill).join('\n')}\n`)
    } else {
      const secrets = counted(policy.holders.length, 'token or link', 'tokens and links')
      print(`${secrets}, ${counted(policy.rules.length, 'rule')}\n${inColumns(describeAll(policy, skills))}`)
    }
    return 0
  } finally {
    await shutdown.close()
  }
}
