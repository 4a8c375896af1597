/** A path below a folder, '' for the folder itself; both absolute. Nothing is normalised, and the folder may be `/`. */
export function pathBelow (folder: string, path: string): string {
  if (path === '') return folder
  return folder === '/' ? `/${path}` : `${folder}/${path}`
}

/** The other way: undefined for a path that is not below the folder. */
export function pathFrom (folder: string, path: string): string | undefined {
  if (path === folder) return ''
  const prefix = folder === '/' ? folder : `${folder}/`
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined
}
