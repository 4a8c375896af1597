import type { LeftOutFiles, LeftOutKind } from '../read/walk.ts'
import type { FileKind } from '../read/file-kind.ts'
import { type FindingCode, findingOnFiles } from '../format/findings.ts'
import type { Finding, ListedFile } from '../shared/skill.ts'

/** Code, beginning of the message, and fix. */
const KINDS = {
  outside: [
    'link_outside', 'links that lead to no file of the skill are skipped',
    'Put copies of the files into the skill folder'
  ],
  folder_link: [
    'link_to_folder', 'links to folders are skipped', 'Put the folders themselves there, or links to single files'
  ],
  special: [
    'file_special', 'files that are not regular files are skipped',
    'Remove FIFOs, sockets and devices from the skill folder'
  ],
  unreadable: [
    'file_unreadable', 'files and folders that the server has no permission to read are skipped',
    'Give the user that runs the server permission to read them'
  ],
  too_long: [
    'file_path_too_long', 'files and folders whose paths are too long for the system are skipped',
    'Give the folders shorter names, or nest them less deeply'
  ],
  unnameable: ['file_name_not_utf8', 'files whose names are not UTF-8 are skipped', 'Rename them in UTF-8']
} as const satisfies Readonly<Record<LeftOutKind, readonly [code: FindingCode, what: string, fix: string]>>

/** Makes one finding for each kind of files that are not in the manifest. */
export function leftOutFindings (leftOut: LeftOutFiles): readonly Finding[] {
  return [...leftOut].flatMap(([kind, paths]) => {
    const [code, what, fix] = KINDS[kind]
    return findingOnFiles(code, paths, what, fix)
  })
}

/** Extensions of programs in machine code or bytecode, which nobody can review. */
const PROGRAM = /\.(?:exe|dll|so|dylib|com|scr|msi|class|jar|pyc|pyo|wasm|deb|rpm|apk|dmg|pkg)$/i

/** Extensions of document and package formats that are archives. */
const PACKED = /\.(?:docx|dotx|xlsx|xlsm|pptx|potx|od[tsp]|epub|vsix|whl|nupkg|sketch|kra|3mf|svgz|npz)$/i

/** Kinds of content that an extension allows. Text has no kind, and a script is text too. */
const NAMED: ReadonlyArray<readonly [names: RegExp, kinds: ReadonlyArray<FileKind | undefined>]> = [
  [/\.(?:png|jpe?g|gif|webp)$/i, ['image']],
  [/\.pdf$/i, ['pdf']],
  [/\.(?:zip|gz|tgz|xz|txz|bz2|tbz2?|7z|rar|zst)$/i, ['archive']],
  [/\.(?:md|markdown|txt|rst|json|jsonl|ya?ml|toml|csv|tsv|xml|html?|css|svg|ini|cfg|env)$/i, [undefined]],
  [
    /\.(?:py|sh|bash|zsh|js|mjs|cjs|ts|mts|rb|pl|php|lua|r|ps1|bat|cmd|go|rs|c|h|cc|cpp|java|kt|swift|sql)$/i,
    [undefined, 'script']
  ]
]

/** Makes findings about the bytes of files. A file that is not what its name says is in no other finding. */
export function contentFindings (
  files: readonly ListedFile[], kindOf: (path: string) => FileKind | undefined
): readonly Finding[] {
  const programs: string[] = []
  const archives: string[] = []
  const mismatches: string[] = []
  for (const { path, size_bytes: size } of files) {
    const kind = kindOf(path)
    const named = NAMED.find(([names]) => names.test(path))?.[1]
    if (named !== undefined && size > 0 && !named.includes(kind)) mismatches.push(path)
    else if (kind === 'program' || PROGRAM.test(path)) programs.push(path)
    else if (kind === 'archive' && !PACKED.test(path)) archives.push(path)
  }
  return [
    ...findingOnFiles(
      'file_program', programs, 'the skill has compiled programs, which nobody can review',
      'Replace them by their source, or say where they come from'
    ),
    ...findingOnFiles(
      'file_archive', archives, 'the skill has archives, whose content is not checked',
      'Replace the archives by the files in them'
    ),
    ...findingOnFiles('file_type_mismatch',
      mismatches, 'files have another type than their names say',
      'Replace the files, or give them the extension of their type')
  ]
}
