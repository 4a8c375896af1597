import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { openAccess } from '../../src/access/access.ts'
import { patternOf } from '../../src/access/patterns.ts'
import { createSecret, digestOf } from '../../src/access/secret.ts'
import { type AppOptions, buildApp } from '../../src/app.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import { followRoutes } from '../helper/routes.ts'
import { until } from '../helper/skills.ts'
import { questions, questionsOfContent, type Question } from './questions.ts'

export const NAMES = ['alpha', 'alpha-2', 'beta', 'gamma', 'delta'] as const
const GROUPS = ['one', 'two'] as const
const ROOTS = ['first', 'second', 'third'] as const

/** A skill as the test writes it. */
interface Made {
  readonly name: string
  readonly displayName: string
  readonly words: string
  readonly isBroken: boolean
  readonly file: boolean
}

interface Rule {
  readonly groups: readonly string[]
  readonly roots: readonly string[] | undefined
  readonly skills: readonly string[] | undefined
}

export interface World {
  readonly roots: ReadonlyArray<readonly Made[]>
  readonly rules: readonly Rule[]
  readonly groups: readonly string[]
}

const made = fc.record<Made>({
  name: fc.constantFrom(...NAMES),
  displayName: fc.constantFrom('', '', ...NAMES),
  words: fc.constantFrom('orange lemon', 'orange', 'lemons and limes', 'pear orangery', 'nothing'),
  isBroken: fc.nat(5).map((number) => number === 0),
  file: fc.boolean()
})

/** Random catalogs, policies and callers. */
export const world: fc.Arbitrary<World> = fc.record({
  roots: fc.array(fc.uniqueArray(made, { selector: ({ name }) => name, maxLength: NAMES.length }), { minLength: 1, maxLength: ROOTS.length }),
  rules: fc.array(fc.record<Rule>({
    groups: fc.subarray([...GROUPS, 'authenticated', 'anonymous'], { minLength: 1 }),
    roots: fc.option(fc.subarray([...ROOTS], { minLength: 1 }), { nil: undefined }),
    skills: fc.option(fc.subarray(['alpha*', 'beta', '*a', 'nosuch'], { minLength: 1 }), { nil: undefined })
  }), { maxLength: 3 }),
  groups: fc.subarray([...GROUPS])
})

/** One that has everything at once: skills hidden by rules, by roots, and by others of their name. */
export const RICH_WORLD: World = {
  roots: [
    [{ name: 'alpha', displayName: '', words: 'orange', isBroken: false, file: true }, { name: 'beta', displayName: 'gamma', words: 'orange lemon', isBroken: false, file: true }],
    [{ name: 'alpha', displayName: '', words: 'lemons and limes', isBroken: false, file: false }, { name: 'gamma', displayName: '', words: 'pear orangery', isBroken: false, file: true },
      { name: 'delta', displayName: '', words: 'orange', isBroken: true, file: true }],
    [{ name: 'alpha', displayName: '', words: 'orange', isBroken: false, file: true }, { name: 'alpha-2', displayName: 'beta', words: 'orange', isBroken: false, file: true }]
  ],
  rules: [{ groups: ['one'], roots: ['second'], skills: ['alpha*', '*a'] }, { groups: ['authenticated'], roots: ['third'], skills: undefined }, { groups: ['two'], roots: undefined, skills: undefined }],
  groups: ['one']
}

function textOf ({ name, displayName, words, isBroken }: Made, root: string): string {
  return isBroken ? `---\nname: [\n---\n${words}` : `---\nname: ${displayName || name}\ndescription: Of ${words} in ${root}\n---\nMore ${words} of ${root}.\n`
}

function write (folder: string, root: string, skills: readonly Made[]): string {
  const path = join(folder, root)
  mkdirSync(path, { recursive: true })
  for (const skill of skills) {
    mkdirSync(join(path, skill.name))
    writeFileSync(join(path, skill.name, 'SKILL.md'), textOf(skill, root))
    if (skill.file) writeFileSync(join(path, skill.name, 'notes.txt'), `notes of ${root}`)
  }
  return path
}

/** What a caller can tell of an answer, without what differs between any two services. */
async function ask (app: FastifyInstance, options: InjectOptions, folder: string, token?: string): Promise<{ readonly status: number, readonly headers: object, readonly body: string }> {
  const headers = { 'x-request-id': 'same', ...options.headers, ...token !== undefined && { authorization: `Bearer ${token}` } }
  const response = await app.inject({ ...options, headers })
  // The paths of folders have other lengths, and each service counts its own changes.
  // A cursor begins with a checksum of what it is valid for, of its view too.
  const body = response.body.replaceAll(folder, '/FOLDER').replace(/"generation":\d+/, '"generation":0')
    .replace(/("next_cursor":")([\w-]+)/, (_, name: string, cursor: string) => `${name}${Buffer.from(cursor, 'base64url').toString().replace(/^\["[\w:]+"/, '')}`)
  const isMoved = body !== response.body || body.includes('"generation":') || response.headers['content-encoding'] !== undefined
  const kept = Object.entries(response.headers).filter(([name]) => name !== 'date' && !(isMoved && (name === 'etag' || name === 'content-length')))
  const normal = Object.fromEntries(kept.map(([name, value]) => {
    if (name === 'vary') return [name, String(value).split(', ').filter((item) => item !== 'Authorization').join(', ') || undefined]
    return [name, name === 'cache-control' ? String(value).replace('private, ', '').replace('public, max-age=0', 'max-age=0') : value]
  }).filter(([, value]) => value !== undefined))
  return { status: response.statusCode, headers: normal, body }
}

/** Answers of both services to one question. */
type Compare = (label: string, guarded: object, alone: object) => void

/**
 * Compares each answer of a service with callers with that of a service that has nothing but what the caller sees. Throws at a
 * difference. Resolves with the routes that no question has reached.
 */
export async function compareServices ({ roots, rules, groups }: World, compare: Compare): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-views-'))
  const closers: Array<() => Promise<unknown>> = []
  try {
    const token = createSecret('token')
    const rootNames = ROOTS.slice(0, roots.length)
    const policy = {
      tokens: [{ name: 'caller', sha256: digestOf(token), groups }],
      rules: rules.map((rule) => ({ ...rule, roots: rule.roots?.filter((root) => rootNames.some((name) => name === root)) }))
        .filter((rule) => rule.roots === undefined || rule.roots.length > 0)
    }
    const file = join(folder, 'access.yaml')
    writeFileSync(file, JSON.stringify(policy))
    const own = new Set<string>([...groups, 'authenticated', 'anonymous'])
    const applying = policy.rules.filter((rule) => rule.groups.some((group) => own.has(group)))
    const sees = (root: string, name: string) => applying.some((rule) => (rule.roots?.includes(root) ?? true) && (rule.skills?.some((skill) => patternOf(skill)(name)) ?? true))
    const isInView = (root: string) => applying.some((rule) => rule.roots?.includes(root) ?? true)

    const log = pino({ level: 'silent' })
    const all = createSkillManager({ projectRoots: rootNames.map((root, index) => write(join(folder, 'all'), root, roots[index] ?? [])), watcher: false, log })
    closers.push(() => all.close())
    const access = await openAccess({ file, basePath: '', publicUrl: undefined, skills: all, log })
    const visible = rootNames.flatMap((root, index) => isInView(root) ? [write(join(folder, 'own'), root, (roots[index] ?? []).filter(({ name }) => sees(root, name)))] : [])
    const alone = createSkillManager({ projectRoots: visible.length > 0 ? visible : [write(join(folder, 'own'), 'none', [])], watcher: false, log })
    closers.push(() => alone.close())
    const options = { logger: log, version: '1', host: '127.0.0.1' }
    const build = async (own: Pick<AppOptions, 'skills' | 'access' | 'plugins'>) => {
      const app = await buildApp({ ...options, registry: createToolRegistry(createTools()), ...own })
      closers.unshift(() => app.close())
      return app
    }
    const routes = followRoutes()
    const guardedApp = await build({ skills: access.nothing, access, plugins: [routes.plugin] })
    const aloneApp = await build({ skills: alone })
    const openApp = await build({ skills: all })
    await all.start()
    await all.available()
    await alone.initialize()
    // The revision of a catalog is made in the background, from the first question on.
    const headers = { authorization: `Bearer ${token}` }
    await until(async () => (await Promise.all([guardedApp, aloneApp].map((app) => app.inject({ url: '/skills', headers })))).every((answer) => 'catalog-revision' in answer.headers || answer.statusCode !== 200))
    const asked: readonly Question[] = [...questions(NAMES), ...await questionsOfContent(NAMES, async (url) => await openApp.inject(url))]
    for (const [label, question] of asked) {
      // Without a root of its own, the other service has an empty one.
      if (visible.length === 0 && (question.url === '/readyz' || question.url === '/ui/status')) continue
      const answers = [await ask(guardedApp, question, join(folder, 'all'), token), await ask(aloneApp, question, join(folder, 'own'))] as const
      compare(label, ...answers)
    }
    return routes.missed()
  } finally {
    for (const close of closers) await close()
    rmSync(folder, { recursive: true })
  }
}
