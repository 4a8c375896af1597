import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { type SettingName, SETTINGS } from '../../config/settings.ts'
import { describeState } from '../../listing/entry.ts'
import type { View } from '../../core/view.ts'
import type { Environment } from '../../operator/setting.ts'
import { startServer } from '../../server.ts'
import { createValidator, type EntryVerdicts } from '../../verdicts/entry.ts'
import type { RunCommand } from '../command.ts'
import { defaultPath, mainFileIn, readConfig } from '../folders.ts'
import { readPackageVersion } from '../../operator/package-files.ts'

/** Settings of a preview: only this machine reaches it, and lines about requests do not bury the findings. */
const OVERRIDES = { host: '127.0.0.1', logLevel: 'warn', ui: true } as const

/** Settings that the command has flags for. Variables of other settings, such as the access file, are ignored. */
const SETTINGS_OF_DEV = ['port', 'linkTargets', 'layout', 'stateDir'] as const satisfies readonly SettingName[]

function environmentOf (env: Environment): Environment {
  return Object.fromEntries(SETTINGS_OF_DEV.map((name) => [SETTINGS[name].variable, env[SETTINGS[name].variable]]))
}

/** Serves a live preview for authors: the open page and the terminal follow each save. */
export const run: RunCommand<{ readonly open: boolean }> = async (args, context) => {
  const { env, print, isTerminal = false } = context
  const positionals = args.positionals.length === 0 ? [await defaultPath(context.cwd)] : args.positionals
  const [folder = '', ...others] = positionals
  const isSkill = others.length === 0 && await mainFileIn(resolve(context.cwd, folder)) !== undefined
  const options = { ...isSkill && { layout: 'single' }, ...args.options }
  const settings = await readConfig({ positionals, options }, { ...context, env: environmentOf(env) })
  const config = { ...settings, ...OVERRIDES }
  await startServer(config, {
    version: readPackageVersion(),
    env,
    preview: (skills, url) => {
      print(`Preview at ${url}\n`)
      if (isTerminal && args.options.open) openBrowser(url, env)
      return printFindings(skills, print)
    }
  })
  return undefined
}

/** Prints what is wrong with each skill, now and after each change of it. Returns a function that ends this. */
function printFindings (skills: View, print: (text: string) => void): () => void {
  const validate = createValidator()
  const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)
  const report = async (name: string): Promise<void> => {
    const reading = skills.read(name, (state) => describeState(state, validate))
    print(`${name}: ${await reading.then(describe, messageOf)}\n`)
  }
  const reportAll = async (): Promise<void> => { for (const name of await skills.list()) await report(name) }
  reportAll().catch(() => {})
  return skills.feed.onChange(({ type, name }) => {
    if (type === 'removed') print(`${name}: removed\n`)
    else void report(name)
  })
}

function describe ({ findings, tokens: { listed, body } }: EntryVerdicts): string {
  const tokens = `about ${listed} tokens in each turn${body === null ? '' : `, ${body} in use`}`
  if (findings.length === 0) return `nothing to fix; ${tokens}`
  const lines = findings.map(({ severity, message, fix, file = 'SKILL.md', line }) =>
    `\n  ${severity} ${file}${line === undefined ? '' : `:${line}`}: ${message}. ${fix}.`)
  return `${tokens}${lines.join('')}`
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [command: string, ...args: string[]]>>> = {
  darwin: ['open'],
  linux: ['xdg-open'],
  win32: ['cmd', '/c', 'start', '']
}

/**
 * Opens an address in the browser of this machine. Does nothing without a desktop: over SSH, `xdg-open` would start a
 * browser in the terminal.
 */
function openBrowser (url: string, env: Environment): void {
  const [command, ...args] = OPENERS[process.platform] ?? []
  const hasDesktop = process.platform !== 'linux' || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
  if (command === undefined || !hasDesktop) return
  // Failures are ignored, since the address is printed too.
  spawn(command, [...args, url], { stdio: 'ignore', detached: true }).on('error', () => {}).unref()
}
