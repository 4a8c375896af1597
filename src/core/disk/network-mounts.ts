import { readFileSync } from 'node:fs'

/** File systems whose calls can hang on another machine, by the names that the kernel has for them. */
const NETWORK_FILE_SYSTEM = /^(?:nfs4?|cifs|smb\w*|9p|fuse(?:\..*|blk)?|virtiofs|ceph|afs|vboxsf|lustre|glusterfs|beegfs)$/

interface Mount {
  readonly point: string
  readonly isNetwork: boolean
}

/**
 * Whether a path, or a mount below it, lies on a network disk, without a touch to any of them. What cannot be told counts as
 * local.
 * @param path absolute, as real as it can be
 * @param mounts the text of `/proc/self/mountinfo`
 */
export function isOnNetwork (path: string, mounts: string = readMounts()): boolean {
  let own: Mount | undefined
  for (const line of mounts.split('\n')) {
    const mount = parseMount(line)
    if (mount === undefined) continue
    if (mount.isNetwork && isWithin(mount.point, path)) return true
    // The deepest one counts, and of several on one folder the last.
    if (isWithin(path, mount.point) && mount.point.length >= (own?.point.length ?? 0)) own = mount
  }
  return own?.isNetwork ?? false
}

/** proc_pid_mountinfo(5): the mount point is the fifth field, the type comes after a lone hyphen. */
function parseMount (line: string): Mount | undefined {
  const fields = line.split(' ')
  const point = fields[4]
  const type = fields[fields.indexOf('-', 6) + 1]
  if (point === undefined || type === undefined) return undefined
  return { point: unescapePath(point), isNetwork: NETWORK_FILE_SYSTEM.test(type) }
}

/** Blanks and backslashes are written as octal numbers of bytes; the rest is left as it is. */
function unescapePath (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? folder : `${folder}/`)
}

function readMounts (): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}
