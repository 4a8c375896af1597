import { spawn } from 'node:child_process'

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [command: string, ...args: string[]]>>> = {
  darwin: ['open'],
  linux: ['xdg-open'],
  win32: ['cmd', '/c', 'start', '']
}

/**
 * Opens an address in the browser on this machine. Nothing happens where there is no desktop: over SSH, the opener
 * of Linux would start a browser in the terminal.
 */
export function openBrowser (url: string, env: Readonly<Record<string, string | undefined>>): void {
  const [command, ...args] = OPENERS[process.platform] ?? []
  const hasDesktop = process.platform !== 'linux' || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
  if (command === undefined || !hasDesktop) return
  // The address is printed too, for machines without an opener.
  spawn(command, [...args, url], { stdio: 'ignore', detached: true }).on('error', () => {}).unref()
}
