import { once, EventEmitter } from 'node:events'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { openEvents } from '../../helper/event-stream.ts'
import { openRaw, type RawConnection, type RawResponse } from '../../helper/raw-http.ts'
import { mutate } from './mutations.ts'
import type { DiskState } from './model-disk.ts'
import { createOracle, type Oracle, type OracleOptions } from './oracle.ts'
import {
  CALL_KINDS, type CallKind, GET_KINDS, type GetKind, getRequest, type Question, type Said, saidByResponse, saidByTools,
  toolCallRequest
} from './questions.ts'
import {
  ASKED_NAMES, ASKED_PATHS, CANARIES, createRandom, LABELS, LINK_TARGET, NAMES, type Random, ROOTS, type World
} from './world.ts'

export interface ChaosOptions extends Pick<OracleOptions, 'bound'> {
  readonly world: World
  /** Origin of a service over the roots of the world. */
  readonly url: string
  /** Decides what the readers ask. */
  readonly seed: number
  /** When the changes end: after so many, or after so many seconds. */
  readonly operations?: number
  readonly seconds?: number
  /**
   * How long labels, catalog entries, search, tool descriptions and events may take to follow, in milliseconds (K52).
   * Default 5 s: five times what is promised, for a busy machine.
   */
  readonly followMs?: number
}

/** An answer that no state of the disk explains. */
export interface Violation {
  readonly question: Question | 'the description of Skill' | 'catalog entries' | 'search' | 'events'
  readonly said: Said
  /** What would have been right: in each state between sending and answer, latest first. */
  readonly expected: readonly string[]
  /** The changes up to the answer, latest first; `>` marks those that it may show. */
  readonly history: readonly string[]
}

export interface ChaosReport {
  /** Changes, and the system calls that they took. */
  operations: number
  steps: number
  requests: number
  /** Answers held against the model, by kind. */
  readonly answers: Map<string, number>
  /** Of these, such as a cache was told are still right. */
  notModified: number
  /** Answers from a folder that lost its name before it was read: content and name are of different moments. */
  renamed: number
  /** Answers to a label that an earlier state explains: labels follow a change within a second (K52). */
  followed: number
  /** Answers that gave up on what would not hold still: an I/O error, or a stream that was cut. */
  gaveUp: number
  readonly violations: Violation[]
}

/** As many as say enough. */
const MAX_VIOLATIONS = 20
const MAX_SHOWN_STEPS = 30
const MAX_SHOWN_CHARACTERS = 300

/** Connections that ask at the same time. */
const READERS = 12
const PIPELINED = 6
const CALLS = 4
const EVERY_NAME = [...ASKED_NAMES, ...LABELS]
const PATHS = [...new Set<string>(ASKED_PATHS)]
const MADE_NAMES: ReadonlySet<string> = new Set([...NAMES, 'vault'])

/** When nothing moves any more. */
const ASKED_TOGETHER = 16

const TOUCHING = /^(?:chmod|link|unlink|rename|rm) /
const OVERLOADED = /^503 .*is overloaded/
const GAVE_UP = /Error reading SKILL\.MD for skill|: I\/O error$| changed while it was read$/

/**
 * Changes the world at random while readers ask the service. Holds each answer against every state that the disk was
 * in between request and answer: it must be right for one of them (K51, K53). In the end, when nothing
 * moves any more, everything is asked once more.
 */
export async function runChaos (options: ChaosOptions): Promise<ChaosReport> {
  const { world, url, seed, operations, seconds, followMs = 5_000, bound } = options
  const { disk } = world
  const { history } = disk
  const places = { linkTarget: LINK_TARGET, folder: disk.folder, bound }
  const { expected, isRight, meaning, labels, manifests, validSkills } = createOracle({ roots: ROOTS, ...places })
  const oracleOf = ROOTS.map((root) => createOracle({ roots: [root], ...places }))
  const report: ChaosReport = {
    operations: 0,
    steps: 0,
    requests: 0,
    answers: new Map(),
    notModified: 0,
    renamed: 0,
    followed: 0,
    gaveUp: 0,
    violations: []
  }
  const answered = new EventEmitter().setMaxListeners(0)
  const sentAt = new Map<object, number>()
  const over = new AbortController()

  const reading =
    Promise.all(Array.from({ length: READERS }, (_, index) => read(createRandom(seed * 1_000 + index + 1))))
  // A reader ends early only by failing.
  await Promise.race([change(), reading])
  over.abort()
  await reading
  await checkQuiet()
  report.steps = history.last.index
  return report

  async function change (): Promise<void> {
    const { random } = world
    const end = performance.now() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000
    while (report.operations < (operations ?? Number.POSITIVE_INFINITY) && performance.now() < end &&
      report.violations.length < MAX_VIOLATIONS) {
      // Storms, in which nothing is old enough to be trusted, and calms, in which caches fill.
      const isStorm = random.oneIn(2)
      for (let left = 5 + random.below(30); left > 0; left--) {
        const before = history.last.index
        for (const moment of mutate(world)) {
          void moment
          if (random.oneIn(3)) await (random.oneIn(4) ? once(answered, 'answer') : nextTurn())
        }
        if (history.last.index === before) continue
        report.operations++
        await (isStorm ? nextTurn() : sleep(1 + random.below(60)))
      }
      history.forget(Math.min(history.at(performance.now() - followMs), ...sentAt.values()))
    }
  }

  /** One client: asks, waits for everything that it asked for, holds it against the model, asks again. */
  async function read (random: Random): Promise<void> {
    const etags = new Map<string, { readonly etag: string, readonly said: Said }>()
    let connection = await openRaw(url)
    while (!over.signal.aborted) {
      const isOver = random.oneIn(3)
        ? callTools(connection, Array.from({ length: 1 + random.below(CALLS) }, () => choose(random, CALL_KINDS)))
        : get(connection, Array.from({ length: random.oneIn(3) ? PIPELINED : 1 }, () => choose(random, GET_KINDS)),
          etags)
      if (!await isOver) {
        connection.destroy()
        connection = await openRaw(url)
      }
    }
    connection.destroy()
  }

  /** Returns false when the connection is of no further use. */
  async function callTools (connection: RawConnection, questions: ReadonlyArray<Question<CallKind>>): Promise<boolean> {
    const sent = begin()
    connection.send(toolCallRequest(questions))
    const response = await connection.response()
    const said = saidByTools(questions, response)
    questions.forEach((question, index) => { check(question, said[index] ?? '', sent.index) })
    checkCanaries(questions[0], response, sent.index)
    sent.end()
    return response.headers.connection !== 'close'
  }

  /** Likewise. Pipelined: the answers come in the order of the questions. */
  async function get (connection: RawConnection, questions: ReadonlyArray<Question<GetKind>>, etags: Map<string, {
    readonly etag: string
    readonly said: Said
  }>): Promise<boolean> {
    const known = questions.map((question) => etags.get(JSON.stringify(question)))
    const sent = begin()
    connection.send(Buffer.concat(questions.map((question, index) => getRequest(question, known[index]?.etag))))
    try {
      for (const [index, question] of questions.entries()) {
        const response = await connection.response().catch((error: unknown) => {
          if (!connection.ended) throw error
        })
        if (response === undefined) {
          gaveUp(question, 'the connection was cut', sent.index)
          return false
        }
        checkCanaries(question, response, sent.index)
        const { etag } = response.headers
        if (response.status === 304) report.notModified++
        const said = response.status === 304
          ? known[index]?.said ?? 'a 304 that nobody asked for'
          : saidByResponse(question, response)
        if (response.status === 200 && etag !== undefined) etags.set(JSON.stringify(question), { etag, said })
        check(question, said, sent.index)
      }
      return true
    } finally {
      sent.end()
    }
  }

  function begin (): { readonly index: number, readonly end: () => void } {
    const { index } = history.last
    const key = {}
    sentAt.set(key, index)
    report.requests++
    return {
      index,
      end: () => {
        sentAt.delete(key)
        answered.emit('answer')
      }
    }
  }

  function check (question: Question, said: Said, sent: number): void {
    report.answers.set(question.kind, (report.answers.get(question.kind) ?? 0) + 1)
    // A machine with other work delays the service too.
    if (OVERLOADED.test(said)) report.gaveUp++
    else if (GAVE_UP.test(said)) gaveUp(question, said, sent)
    else if (!history.since(sent).some(({ disk }) => isRight(disk, question, said))) {
      if (isOfTwoMoments(question, said, sent) || isOfRootsInTurn(question, said, sent)) report.renamed++
      else if (isOfEarlierLabels(question, said, sent)) report.followed++
      else violate(question, said, sent)
    }
  }

  /** The folder that the name meant at one moment, in its state at another. */
  function isOfTwoMoments (question: Question, said: Said, sent: number): boolean {
    const window = history.since(sent)
    const disks = window.map(({ disk }) => disk)
    return distinct(disks, (disk) => meaning(disk, question.name)).some((named) =>
      disks.some((disk) => isRight(disk, question, said, named)))
  }

  /** Roots are asked one after the other: what was said of each was right at some moment. */
  function isOfRootsInTurn (question: Question, said: Said, sent: number): boolean {
    const disks = history.since(sent).map(({ disk }) => disk)
    const has = (root: Oracle, disk: DiskState, name: string): boolean =>
      root.meaning(disk, name) !== root.meaning(disk, '')
    const lacked = (root: Oracle, name: string): boolean => disks.some((disk) => !has(root, disk, name))
    const { kind, name } = question
    if (name !== '') {
      return oracleOf.some((root, index) => oracleOf.slice(0, index).every((before) => lacked(before, name)) &&
        distinct(disks, (disk) => kind === 'skill' ? root.labels(disk) : root.meaning(disk, name)).some((named) =>
          disks.some((disk) => root.isRight(disk, question, said, named))))
    }
    const names: readonly string[] = /\[.*\]/.exec(said)?.[0].match(/[\w-]+/g) ?? []
    return EVERY_NAME.concat('vault').every((name) => names.includes(name)
      ? oracleOf.some((root) => disks.some((disk) => has(root, disk, name)))
      : oracleOf.every((root) => lacked(root, name)))
  }

  /** K52: which skill a label means may be as it was a while ago, in each root, and so may what that skill is. */
  function isOfEarlierLabels (question: Question, said: Said, sent: number): boolean {
    if (question.kind !== 'skill') return false
    const window = history.since(sent)
    const disks = window.map(({ disk }) => disk)
    const earlier = history.since(history.at((window.at(-1)?.at ?? 0) - followMs)).map(({ disk }) => disk)
    const names = new Set(oracleOf.flatMap((root) => distinct(earlier, root.labels).flatMap((disk) =>
      root.labelledSkills(disk, question.name).map(({ name }) => name))))
    return distinct(earlier, labels).some((named) =>
      [named, ...disks].some((disk) => isRight(disk, question, said, named))) ||
      [...names].some((name) => oracleOf.some((root) =>
        disks.some((disk) => root.documentOf(disk, name, question) === said)))
  }

  /**
   * Only what changed meanwhile may be given up on; other names and permissions of a file count as changes of it too.
   */
  function gaveUp (question: Question, said: Said, sent: number): void {
    report.gaveUp++
    const window = history.since(sent)
    const possible = new Set(window.map(({ disk }) => expected(disk, question)))
    if (possible.size === 1 && !window.some(({ index, what }) => index > sent && TOUCHING.test(what))) {
      violate(question, said, sent)
    }
  }

  function checkCanaries (question: Question | undefined, { text }: RawResponse, sent: number): void {
    const canary = CANARIES.find((each) => text.includes(each))
    if (canary !== undefined && question !== undefined) violate(question, `an answer with the ${canary}`, sent)
  }

  function violate (question: Question, said: Said, sent: number): void {
    const window = history.since(sent)
    const before = history.since(sent - MAX_SHOWN_STEPS)
    report.violations.push({
      question,
      said: shorten(said),
      expected: [...new Set(window.map(({ disk }) => shorten(expected(disk, question))))],
      history: before.slice(0, 2 * MAX_SHOWN_STEPS).map(
        ({ index, what, disk }) =>
          `${index >= sent ? '>' : ' '} ${index} ${what}${expected(disk, question) === said ? '   <- this is what was said' : ''}`)
    })
  }

  /** When nothing moves any more: every question of every kind, and the index (K52). */
  async function checkQuiet (): Promise<void> {
    const connection = await openRaw(url)
    for (const some of inParts(GET_KINDS.flatMap(everyQuestion))) await get(connection, some, new Map())
    for (const some of inParts(CALL_KINDS.flatMap(everyQuestion))) await callTools(connection, some)
    connection.destroy()
    await checkFollowing()
  }

  /** What follows a change by itself: tool descriptions (K28), catalog entries, search and events (K52). */
  async function checkFollowing (): Promise<void> {
    const skills = validSkills(history.last.disk)
    const listed = skills.length === 0 ? 'No skills currently available' : skills.join(', ')
    await follows('the description of Skill', `Invoke skills based on available skill metadata. Skills: ${listed}`,
      async () => {
        const [tool] = await getJson('/agent/tools?toolset=wave&format=anthropic') as ReadonlyArray<{
          readonly description: string
        }>
        return String(tool?.description)
      })
    const revisions = [...manifests(history.last.disk)].map(([name, said]) =>
      [name, /"revision":"([^"]+)"/.exec(said)?.[1] ?? null] as const)
    await follows('catalog entries', JSON.stringify(revisions.sort(([a], [b]) => a < b ? -1 : 1)), async () => {
      const { skills = [] } = await getJson('/catalog?limit=500') as {
        readonly skills?: ReadonlyArray<{ readonly name: string, readonly revision?: string }>
      }
      return JSON.stringify(skills.map(({ name, revision }) => [name, revision ?? null] as const))
    })
    await checkNews()
  }

  /** A skill that appears is found and is an event. */
  async function checkNews (): Promise<void> {
    const stream = await openEvents(url)
    const path = '/a/newcomer'
    world.disk.makeFolder(path)
    world.makeFile(`${path}/SKILL.md`, Buffer.from('---\nname: newcomer\ndescription: About wombats\n---\n'))
    await Promise.all([
      follows('search', 'newcomer', async () => {
        const { skills = [] } = await getJson('/catalog?q=wombats') as {
          readonly skills?: ReadonlyArray<{ readonly name: string }>
        }
        return skills.map(({ name }) => name).join()
      }),
      follows('events', 'newcomer', async () =>
        String(stream.events.find(({ data }) => data['name'] === 'newcomer')?.data['name']))
    ])
    stream.destroy()
  }

  async function getJson (path: string): Promise<unknown> {
    return await (await fetch(url + path)).json()
  }

  async function follows (question: Violation['question'], wanted: string, ask: () => Promise<string>): Promise<void> {
    const deadline = performance.now() + followMs
    let said = await ask()
    while (said !== wanted && performance.now() < deadline) {
      await sleep(20)
      said = await ask()
    }
    if (said !== wanted) report.violations.push({ question, said, expected: [wanted], history: [] })
  }
}

/** Every question of a kind. A skill that nobody has made has no file, whatever its path. */
function everyQuestion<Kind extends GetKind | CallKind> (kind: Kind): Array<Question<Kind>> {
  if (kind === 'list' || kind === 'list_skills') return [{ kind, name: '', path: '' }]
  const hasPath = kind === 'file' || kind === 'file text' || kind === 'read_file_in_skill'
  return EVERY_NAME.flatMap((name) => {
    const paths = !hasPath ? [''] : MADE_NAMES.has(name) ? PATHS : PATHS.slice(0, 1)
    return paths.map((path) => ({ kind, name, path }))
  })
}

const QUESTIONS = new Map<string, readonly Question[]>(
  [...GET_KINDS, ...CALL_KINDS].map((kind) => [kind, everyQuestion(kind)]))

/** One of the states for each key: to hold an answer against all pairs of states would take minutes. */
function distinct (disks: readonly DiskState[], keyOf: (disk: DiskState) => string): readonly DiskState[] {
  return [...new Map(disks.map((disk) => [keyOf(disk), disk])).values()]
}

function choose<Kind extends GetKind | CallKind> (random: Random, kinds: readonly Kind[]): Question<Kind> {
  return random.pick(QUESTIONS.get(random.pick(kinds) ?? '') ?? []) as Question<Kind>
}

function inParts<Item> (items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / ASKED_TOGETHER) },
    (_, index) => items.slice(index * ASKED_TOGETHER, (index + 1) * ASKED_TOGETHER))
}

/** Manifests by what tells them apart. */
function shorten (said: Said): string {
  if (said.startsWith('200 {"skill_name"') && said.includes('"files":')) {
    const { files } = JSON.parse(said.slice('200 '.length)) as {
      readonly files: ReadonlyArray<{ readonly path: string, readonly size_bytes: number }>
    }
    return `200 ${files.map(({ path, size_bytes: size }) => `${path} (${size})`).join(', ')}`
  }
  return said.length > MAX_SHOWN_CHARACTERS
    ? `${said.slice(0, MAX_SHOWN_CHARACTERS)}… (${said.length} characters)`
    : said
}
