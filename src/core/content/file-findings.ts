import type { LeftOut, LeftOutKind } from '../disk/left-out.ts'
import { finding, type FindingCode, quoteList } from '../format/findings.ts'
import type { Finding } from '../ground/skill.ts'

/** Code, what is said before and after the names, and what mends it. */
const KINDS = {
  outside: ['link_outside', 'links that lead to no file of the skill are left out', 'Put copies of the files into the skill folder'],
  folder_link: ['link_to_folder', 'links to folders are left out', 'Put the folders themselves there, or links to single files'],
  special: ['file_special', 'files that are no regular files are left out', 'Remove FIFOs, sockets and devices from the skill folder'],
  unreadable: ['file_unreadable', 'the server may not read some files or folders, which are left out', 'Give the user that runs the server permission to read them'],
  unnameable: ['file_name_not_utf8', 'files whose names are not UTF-8 are left out', 'Rename them in UTF-8']
} as const satisfies Readonly<Record<LeftOutKind, readonly [code: FindingCode, what: string, fix: string]>>

/** Says what is not in the manifest of a skill: one finding of each kind, with the first names and a count. */
export function leftOutFindings (leftOut: LeftOut): readonly Finding[] {
  return [...leftOut].map(([kind, { names, count }]) => {
    const [code, what, fix] = KINDS[kind]
    const [file] = names
    return { ...finding(code, `${what}: ${quoteList(names, count)}`, fix), ...file !== undefined && { file } }
  })
}
