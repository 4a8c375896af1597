import { resolve } from 'node:path'
import type { VerifiedSkill } from '../../trust/verify-folder.ts'
import { isAddress } from '../../sources/address/address.ts'
import { type Command, CommandError } from '../command.ts'
import { namingSkipped } from '../folders/left-out.ts'
import { readLinkTargets, ROOT_FLAGS, withRoots } from '../folders/open-folders.ts'
import { showing } from '../progress.ts'

/** Checks skills as a service with the same trust file and `require` does. */
export const command: Command = {
  summary: 'checks the signatures of a skill, or of all skills of a folder',
  positionals: 'DIR...',
  flags: ['trust', 'locked', 'allow-links', ...ROOT_FLAGS],
  switches: ['json'],
  details: () => `  DIR                skills, folders of skills, or addresses of sources (--layout and --state-dir as for serve)
  --trust FILE       the trust file
  --locked FILE      a lock: only revisions that it names pass, and each skill that it names has to be there, unless DIR is a skill
  --allow-links DIR  folders that links in a folder of skills may lead into, as for serve
  --json             print JSON instead of lines

Exits with 0 when a service with these files and require would serve every skill of the folders and of the lock, with 1 otherwise.
`,
  async run ({ positionals: folders, flags }, context) {
    const { cwd, print } = context
    const onProgress = showing(context.progress, 'skill')
    const [trustFile, lockFile] = [flags.get('trust')?.at(-1), flags.get('locked')?.at(-1)]
    if (folders.length === 0) throw new CommandError('verify takes folders: skillserve verify DIR... --trust FILE')
    if (trustFile === undefined && lockFile === undefined) throw new CommandError('verify needs --trust FILE or --locked FILE')
    const { readPolicy } = await import('../../trust/read-policy.ts')
    const { FolderError, holdsMainFile, verifyFolder, verifyRoot } = await import('../../trust/verify-folder.ts')
    const { policy, lockedNames } = await readPolicy({ ...trustFile !== undefined && { trustFile: resolve(cwd, trustFile) }, ...lockFile !== undefined && { lockFile: resolve(cwd, lockFile) } })
    const linkTargets = readLinkTargets({ flags }, context)
    try {
      let verified: readonly VerifiedSkill[] = []
      let areAll = true
      await namingSkipped(context, async (onSkipped) => {
        for (const folder of folders) {
          const path = resolve(cwd, folder)
          const found = isAddress(folder)
            ? await withRoots([folder], { flags }, context, async ({ projectRoots }) => (await Promise.all(projectRoots.map((root) => verifyRoot(root, policy, { linkTargets, onSkipped, onProgress })))).flat())
            : await verifyFolder(path, policy, { linkTargets, onSkipped, onProgress })
          verified = [...verified, ...found]
          areAll &&= isAddress(folder) || !await holdsMainFile(path)
        }
      })
      const missing = areAll ? missingOf(lockedNames, verified) : []
      const skills = [...verified, ...missing].map(({ name, isServed, problem, report }) => ({ name, ok: isServed, ...report, problem }))
      if (flags.has('json')) print(`${JSON.stringify({ skills }, undefined, 2)}\n`)
      else for (const line of inColumns(skills.map(({ name, ok, problem, ...report }) => [ok ? 'ok     ' : 'refused', JSON.stringify(name), report.signer ?? '-', problem]))) print(`${line}\n`)
      return skills.every(({ ok }) => ok) ? 0 : 1
    } catch (error) {
      if (error instanceof FolderError) throw new CommandError(error.message)
      throw error
    }
  }
}

/** The skills of a lock that no folder has. */
function missingOf (locked: readonly string[], verified: readonly VerifiedSkill[]): VerifiedSkill[] {
  const names = new Set(verified.map(({ name }) => name))
  return locked.filter((name) => !names.has(name)).map((name) => ({ name, report: undefined, isServed: false, findings: [], problem: 'the lock names this skill, and no folder has it' }))
}

/** Lines of columns as wide as their longest entry, two spaces apart. */
function inColumns (rows: ReadonlyArray<readonly string[]>): string[] {
  const widths = rows[0]?.map((_, column) => rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)) ?? []
  return rows.map((row) => row.map((entry, column) => entry.padEnd(widths[column] ?? 0)).join('  ').trimEnd())
}
