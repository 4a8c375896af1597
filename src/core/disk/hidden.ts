/** Paths that are kept from being served, besides the hidden names. */
export interface PathFilter {
  /** Two filters with the same id hide the same. */
  readonly id: string
  /** @param path relative, of normal segments, without a slash at the end */
  hides (path: string, isFolder: boolean): boolean
  /** What is hidden for certain, of a filter that hides more while it is not known what an ignore file says. */
  readonly certain?: PathFilter | undefined
}

const VERSION_CONTROL = new Set(['.git', '.hg', '.svn'])

/** Version control, and what package managers and interpreters put beside a program: never part of a skill. */
const HIDDEN_FOLDERS = new Set([...VERSION_CONTROL, 'node_modules', '__pycache__'])

/** Secrets; what macOS and Windows leave behind; backups, swap files and locks of vim and Emacs. */
const HIDDEN_FILE = /^(?:\.env(?:\.(?!(?:example|sample|template)$).*)?|\.DS_Store|thumbs\.db|desktop\.ini|.*~|\..*\.sw.|4913|\.#.*|#.*#)$/su
const CASELESS = /^(?:thumbs\.db|desktop\.ini)$/i

/** Whether a path lies in a version control folder, or is one. */
export function isVersionControl (segments: readonly string[]): boolean {
  return segments.some((segment) => VERSION_CONTROL.has(segment))
}

/** Whether a path lies in a folder that no skill serves, or has the name of one. */
export function isHiddenPath (segments: readonly string[]): boolean {
  return segments.some((segment) => HIDDEN_FOLDERS.has(segment))
}

/** Whether a file's own name hides it; a folder of this name is an ordinary folder. */
export function isHiddenFile (name: string): boolean {
  return HIDDEN_FILE.test(name) || CASELESS.test(name)
}

/** Whether what is at a path of a skill is not served. */
export function isHidden (path: string, isFolder: boolean, filter?: PathFilter): boolean {
  const segments = path.split('/')
  return isHiddenPath(segments) || (!isFolder && isHiddenFile(segments.at(-1) ?? '')) || filter?.hides(path, isFolder) === true
}
