/** Joins an absolute folder, which may be `/`, and a relative path; '' is the folder itself. Does not normalize. */
export function pathBelow (folder: string, path: string): string {
  if (path === '') return folder
  return folder === '/' ? `/${path}` : `${folder}/${path}`
}

/** The inverse of `pathBelow`; undefined for a path that is not below the folder. */
export function pathFrom (folder: string, path: string): string | undefined {
  if (path === folder) return ''
  const prefix = folder === '/' ? folder : `${folder}/`
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined
}

export function baseName (path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Empty for a relative path at the top. */
export function folderOf (path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

/** Encodes a relative path for a URL, each segment once. */
export function encodePath (path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/** Returns all folders that contain a path, the outermost first. */
export function foldersAbove (path: string): string[] {
  return path.split('/').slice(0, -1).map((_name, index, names) => names.slice(0, index + 1).join('/'))
}

export function quotePath (path: string): string {
  return JSON.stringify(path.length > 120 ? `${path.slice(0, 120)}…` : path)
}
