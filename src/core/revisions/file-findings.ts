import type { LeftOutFiles, LeftOutKind } from '../read/walk.ts'
import type { FileKind } from '../read/file-kind.ts'
import { type FindingCode, findingOnFiles, FINDINGS } from '../format/findings.ts'
import type { Finding, ListedFile } from '../shared/skill.ts'

const KINDS = {
  outside: ['link_outside', 'Put copies of the files into the skill folder'],
  folder_link: ['link_to_folder', 'Put the folders themselves there, or links to single files'],
  special: ['file_special', 'Remove FIFOs, sockets and devices from the skill folder'],
  unreadable: ['file_unreadable', 'Give the user that runs the server permission to read them'],
  too_long: ['file_path_too_long', 'Give the folders shorter names, or nest them less deeply'],
  unnameable: ['file_name_not_utf8', 'Rename them in UTF-8']
} as const satisfies Readonly<Record<LeftOutKind, readonly [code: FindingCode, fix: string]>>

/** Makes one finding for each kind of files that are not in the manifest. */
export function leftOutFindings (leftOut: LeftOutFiles): readonly Finding[] {
  return [...leftOut].flatMap(([kind, paths]) => {
    const [code, fix] = KINDS[kind]
    return fileFinding(code, paths, fix)
  })
}

/** The beginning of its message is the meaning of the code. */
function fileFinding (code: FindingCode, paths: readonly string[], fix: string): Finding[] {
  return findingOnFiles(code, paths, FINDINGS[code][1], fix)
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
    ...fileFinding('file_program', programs, 'Replace them by their source, or say where they come from'),
    ...fileFinding('file_archive', archives, 'Replace the archives by the files in them'),
    ...fileFinding('file_type_mismatch', mismatches, 'Replace the files, or give them the extension of their type')
  ]
}
