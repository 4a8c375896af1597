/** Filter of paths that are not served, in addition to hidden names. */
export interface PathFilter {
  /** Two filters with the same id hide the same paths. */
  readonly id: string
  /** @param path relative and normalized, without a slash at the end */
  hides (path: string, isFolder: boolean): boolean
}

const VERSION_CONTROL = new Set(['.git', '.hg', '.svn'])

/** Names that hide files, and folders with all that is in them. */
const HIDDEN_NAMES = [
  // Version control.
  '\\.git', '\\.hg', '\\.svn',
  // Files of package managers and interpreters.
  'node_modules', '__pycache__',
  // The folders behind a mounted ConfigMap (Kubernetes): `..data` and `..2026_11_26_10_00_00.123`.
  '\\.\\..*',
  // Folders of macOS, Windows and network storage.
  '\\.AppleDouble', '@eaDir', '\\$RECYCLE\\.BIN',
  // Usual places of credentials.
  '\\.ssh', '\\.aws'
]

/** Names that hide files but not folders. */
const HIDDEN_FILE_NAMES = [
  // Usual names of credentials. Examples of `.env` files are served.
  '\\.env(?:\\.(?!(?:example|sample|template)$).*)?', '\\.envrc', '\\.netrc', '\\.npmrc', 'id_rsa.*', 'id_ed25519.*',
  // Finder and Explorer.
  '\\.DS_Store', '\\._.*', 'Icon\\r', '[Tt]humbs\\.db', '[Dd]esktop\\.ini',
  // Backups, swap files and locks of vim, Emacs, Kate, JetBrains editors, Office and LibreOffice.
  '.*~', '\\..*\\.sw.', '4913', '\\.#.*', '#.*#', '\\..*\\.kate-swp', '.*___jb_.*___', '~\\$.*', '\\.~lock\\..*#',
  // Temporary files: deleted but still open, or being copied.
  '\\.nfs.*', '\\.fuse_hidden.*', '\\.goutputstream-.*', '\\.syncthing\\..*\\.tmp'
]

const HIDDEN = new RegExp(`^(?:${HIDDEN_NAMES.join('|')})$`, 'su')
const HIDDEN_FILE = new RegExp(`^(?:${HIDDEN_FILE_NAMES.join('|')})$`, 'su')

export function isVersionControl (segments: readonly string[]): boolean {
  return segments.some((segment) => VERSION_CONTROL.has(segment))
}

/** Whether one of these names hides a file or folder. */
export function isHiddenPath (segments: readonly string[]): boolean {
  return segments.some((segment) => HIDDEN.test(segment))
}

export function isHidden (path: string, isFolder: boolean, filter?: PathFilter): boolean {
  const segments = path.split('/')
  return isHiddenPath(segments) || (!isFolder && HIDDEN_FILE.test(segments.at(-1) ?? '')) ||
    filter?.hides(path, isFolder) === true
}
