import { gzipSync } from 'node:zlib'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runHere } from '../helper/command-line.ts'
import { runProcess, startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

interface Line {
  readonly event: string
  readonly outcome?: string
  readonly day?: number
  readonly caller?: string
  readonly target?: object
}

function linesOf (lines: readonly Line[]): string {
  return lines.map(({ event, outcome = 'success', day = 1, caller = 'ann', target = {} }) => {
    const principal = caller.includes('.') ? { kind: 'anonymous' } : { kind: 'token', id: `token:${caller}` }
    const source = { address: caller }
    return `${JSON.stringify({ time: `2026-11-0${day}T10:00:00Z`, event, outcome, principal, source, target })}\n`
  }).join('')
}

const LINES: readonly Line[] = [
  { event: 'service.started' },
  { event: 'skill.read', target: { skill: 'calculator' } },
  { event: 'skill.read', outcome: 'not_modified', caller: 'bob', target: { skill: 'calculator' } },
  { event: 'skill.file_read', day: 2, target: { skill: 'weather', path: 'a.md' } },
  { event: 'skill.read', outcome: 'not_found', target: { skill: 'nope' } },
  { event: 'skill.search', target: { query: '=cmd|"x"', results: 0 } },
  { event: 'skill.search', target: { query: 'sums', results: 2 } },
  { event: 'auth.failed', outcome: 'denied', caller: '192.0.2.1', target: { code: 'invalid_token' } },
  { event: 'access.denied', outcome: 'denied', caller: '192.0.2.2', target: { code: 'invalid_token' } }
]

/** Two logs, the older one rotated and compressed. */
function writeLogs (t: Test): string {
  const folder = t.testdir({
    skills: { calculator: skill('calculator'), weather: skill('weather'), old: skill('old') }
  })
  writeFileSync(join(folder, 'audit.jsonl'), `${linesOf(LINES.slice(4))}half a li`)
  writeFileSync(join(folder, 'audit.jsonl.1.gz'), gzipSync(linesOf(LINES.slice(0, 4))))
  return folder
}

t.test('K96: usage counts reads, callers, what nobody read, empty searches and refusals', async (t) => {
  const cwd = writeLogs(t)
  const files = ['audit.jsonl', 'audit.jsonl.1.gz']
  const text = await runHere(['usage', ...files, '--roots', 'skills'], { cwd })
  t.equal(text.code, 0)
  t.match(text.stderr, /1 line skipped: not written by an audit log/)
  t.match(text.stdout, /SKILL +READS +CALLERS\n"calculator" +2 +2\n"weather" +1 +1\n/)
  t.match(text.stdout, 'Skills that were never read: "old"\n')
  t.match(text.stdout, /"invalid_token" +2 +2\n/)

  const json = JSON.parse((await runHere(['usage', ...files, '--format', 'json', '--by', 'day'], { cwd })).stdout)
  t.same(json, {
    skills: [
      { day: '2026-11-01', name: 'calculator', count: 2, callers: 2 },
      { day: '2026-11-02', name: 'weather', count: 1, callers: 1 }
    ],
    never_read: [],
    empty_searches: [{ day: '2026-11-01', name: '=cmd|"x"', count: 1, callers: 1 }],
    refusals: [{ day: '2026-11-01', name: 'invalid_token', count: 2, callers: 2 }]
  })

  const csv = (await runHere(['usage', ...files, '--format', 'csv'], { cwd })).stdout
  t.match(csv, 'kind,day,name,count,callers\r\nskill,,calculator,2,2\r\n')
  t.match(csv, 'empty_search,,"\'=cmd|""x""",1,1\r\n', 'a formula is a text')
})

t.test('K96: a log that is missing or damaged is one sentence', async (t) => {
  const cwd = t.testdir({ 'bad.gz': 'no gzip' })
  for (const file of ['missing.jsonl', 'bad.gz', '.']) {
    const { code, stdout, stderr } = await runHere(['usage', file], { cwd })
    t.match({ code, stdout }, { code: 1, stdout: '' }, file)
    t.match(stderr, /^skillserve: \S+ cannot be read \([^\n]+\)\n$/)
  }
})

t.test('K96: the audit log of a service is counted as it was read', async (t) => {
  const folder = t.testdir({ skills: { calculator: skill('calculator'), weather: skill('weather') } })
  const log = join(folder, 'audit.jsonl')
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: log } })
  for (const path of ['/skills/calculator', '/catalog?q=nothing-fits', '/skills/calculator/archive.zip']) {
    await (await fetch(service.url + path)).arrayBuffer()
  }
  await service.stop()
  const { stdout } = await runProcess(t,
    { args: ['usage', log, '--format', 'json', '--roots', join(folder, 'skills')] })
  t.match(JSON.parse(stdout), {
    skills: [{ name: 'calculator', count: 2, callers: 1 }],
    never_read: ['weather'],
    empty_searches: [{ name: 'nothing-fits', count: 1 }]
  })
})
