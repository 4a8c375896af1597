/** Attacks by clients that send many requests at once and read nothing. Each throws when the service gives too much. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AttackTarget, isAlive, startAttackTarget } from './attack-target.ts'
import { type LoadFigures, measure } from './heavy-attacks.ts'
import type { ProcessOwner } from '../../helper/process.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../../helper/raw-http.ts'
import { skillText, until } from '../../helper/skills.ts'

const LARGE_FILE_BYTES = 8_000_000
const SKILLS = 500
const DESCRIPTION = 'Does what nobody has asked for. '.repeat(20)

/** How often another client asks while the attackers wait. */
const QUESTIONS = 100

export interface PipeliningAttack {
  /** What one client sends at once. */
  readonly bytes: Buffer
  /** Descriptors that a client may keep open besides its connection. Default 0. */
  readonly descriptors?: number
}

/** By what is asked. */
export const PIPELINES: Readonly<Record<string, PipeliningAttack>> = {
  'a file of 8 MB': { bytes: repeated(1_000, request('GET', '/skills/demo/files/large.bin')), descriptors: 1 },
  'the largest page': { bytes: repeated(900, request('GET', '/catalog?limit=500')) },
  'a skill that is missing': { bytes: repeated(350, jsonRequest('POST', '/agent/tool-call', { id: 'call-1', function: { name: 'Skill', arguments: { skill: 'missing' } } })) },
  // Such a file is read, decoded and rendered for each call: four copies at a time.
  'a tool call for 8 MB': { bytes: repeated(350, jsonRequest('POST', '/agent/tools/read_file_in_skill', { skill_name: 'demo', file_path: 'large.txt' })) },
  'the shortest request': { bytes: repeated(10_000, Buffer.from('GET / HTTP/1.1\r\n\r\n')) },
  'the largest page, once': { bytes: request('GET', '/catalog?limit=500') }
}

export interface PipeliningFigures extends LoadFigures {
  /** The most that were open more than before. */
  readonly descriptors: number
}

/**
 * Clients send requests and read no answer. They go when another client has been answered a hundred times.
 * @param attacks of PIPELINES, one after the other against one service
 */
export async function attackByPipelines (t: ProcessOwner, attacks: readonly string[], clients: number, heapMb?: number): Promise<PipeliningFigures> {
  const target = await startAttackTarget(t, { prepare: writeLargeTree, heapMb })
  // What the first answers load, and leave in memory, is no attack.
  if (!await isAlive(target.url)) throw new Error('the service is not alive')
  for (const warming of ['/catalog?limit=500', '/skills/demo/files/large.bin']) await rawRequest(target.url, request('GET', warming, { headers: ['Range: bytes=0-9'] }))
  await until(() => target.log().some(({ msg }) => msg === 'watching a skills folder'))
  let most = 0
  const figures = await measure(target, async () => {
    for (const what of attacks) most = Math.max(most, await attackBy(PIPELINES[what] ?? { bytes: Buffer.alloc(0) }, target, clients))
  })
  return { ...figures, descriptors: most }
}

/** How many descriptors were open more than before, at most. */
async function attackBy ({ bytes, descriptors: allowed = 0 }: PipeliningAttack, target: AttackTarget, clients: number): Promise<number> {
  let descriptors = 0
  const before = target.descriptors()
  const attackers = await Promise.all(Array.from({ length: clients }, () => openRaw(target.url)))
  for (const attacker of attackers) {
    attacker.socket.pause()
    attacker.send(bytes)
  }
  const other = await openRaw(target.url)
  for (let question = 0; question < QUESTIONS; question++) {
    const { status } = await other.send(request('GET', '/livez')).response({ timeoutMs: 60_000 })
    if (status !== 200) throw new Error(`/livez: ${status}`)
    descriptors = Math.max(descriptors, target.descriptors() - before)
  }
  other.destroy()
  for (const attacker of attackers) attacker.destroy()
  // A few belong to files that are being read.
  if (descriptors > clients * (1 + allowed) + 5) throw new Error(`${descriptors} descriptors for ${clients} clients`)
  await until(() => target.descriptors() <= before)
  return descriptors
}

function repeated (count: number, bytes: Buffer): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(bytes))
}

function writeLargeTree (root: string): void {
  writeFileSync(join(root, 'demo/large.bin'), Buffer.alloc(LARGE_FILE_BYTES, 'x'))
  writeFileSync(join(root, 'demo/large.txt'), 'x'.repeat(LARGE_FILE_BYTES))
  for (let index = 0; index < SKILLS; index++) {
    const name = `skill-${index}`
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'SKILL.md'), skillText(name).replace(/^description: .*$/m, `description: ${DESCRIPTION}`))
  }
}
