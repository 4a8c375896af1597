import t from 'tap'
import type { Finding } from '../../src/core/shared/skill.ts'
import { REPORTERS } from '../../src/validate/report/index.ts'
import type { ReporterOptions, ReportFormat, SkillReport } from '../../src/validate/report/reporter.ts'
import { GOOD, subjectFor } from '../helper/verdicts.ts'

const DOCUMENTATION = 'https://github.com/skillserve/skillserve/blob/main/docs/findings.md'
const NO_TOTALS = { skills: 1, error: 0, warning: 0, info: 0, accepted: 0 }
const FINDINGS: readonly Finding[] = [
  {
    code: 'name_missing',
    severity: 'error',
    message: 'a: 100 %, {b}\u001b',
    fix: 'Do\nit',
    field: 'name',
    file: 'SKILL.md',
    line: 2,
    column: 7,
    targets: ['codex', 'spec']
  },
  { code: 'file_program', severity: 'warning', message: 'b', fix: 'Do b', file: 'a,b:c.md' },
  { code: 'file_program', severity: 'info', message: 'c', fix: 'Do c', file: 'c.md', line: 3 },
  { code: 'body_empty', severity: 'info', message: 'd', fix: 'Do d' }
]

async function report (more: Partial<SkillReport> = {}): Promise<SkillReport> {
  const { skill } = await subjectFor({ ...GOOD, mainFile: 'skill.md' })
  const tokens = () => ({ listed: 6, body: 7, all_files: 8, method: 'm' })
  return {
    path: 'skills/demo',
    skill,
    revision: null,
    verdicts: [{ target: 'codex', verdict: 'ok', read: '2026-11-22' }],
    findings: FINDINGS,
    tokens,
    ...more
  }
}

function print (
  format: ReportFormat, reports: readonly SkillReport[], options: Partial<ReporterOptions> = {},
  totals = NO_TOTALS
): string {
  let text = ''
  const reporter =
    REPORTERS[format]({ print: (part) => { text += part }, targets: undefined, hasColor: false, ...options })
  for (const each of reports) reporter.skill(each)
  reporter.end?.(totals)
  return text
}

t.test('K79: a report as text has a line for each finding and its remedy, and each address once', async (t) => {
  t.equal(print(
    'text', [await report()], {}, { skills: 1_000, error: 1, warning: 1, info: 2, accepted: 1 }
  ), `skills/demo/SKILL.md:2:7  error  name_missing  a: 100 %, {b}\\u001b
    fix: Do\\u000ait
    matters to: codex, spec
    see: ${DOCUMENTATION}#name_missing
skills/demo/a,b:c.md  warning  file_program  b
    fix: Do b
    see: ${DOCUMENTATION}#file_program
skills/demo/c.md:3:1  info  file_program  c
    fix: Do c
skills/demo  info  body_empty  d
    fix: Do d
    see: ${DOCUMENTATION}#body_empty

1,000 skills: 1 error, 1 warning, 2 infos, 1 accepted by the baseline; ${'about 6 tokens in each turn, 7 in use, 8 ' +
  'with all files'}
`)
  t.equal(print(
    'text', [await report({ findings: [], tokens: () => ({ listed: 1, body: null, all_files: null, method: '' }) })]
  ), '1 skill: no findings; about 6 tokens in each turn\n')
  const notLoaded = await report({
    findings: [],
    verdicts: [{ target: 'codex', verdict: 'not_loaded', read: '' }, { target: 'spec', verdict: 'ok', read: '' }]
  })
  t.equal(print(
    'text', [notLoaded, await report({ findings: [] })], { targets: ['codex', 'spec'] }
  ), 'skills/demo: codex not_loaded, spec ok\n\n1 skill: no findings; about 12 tokens in each turn\n')
  t.equal(
    print('text', [notLoaded]), '1 skill: no findings; about 6 tokens in each turn, 7 in use, 8 with all files\n',
    'no verdict that nobody asked for'
  )
})

t.test('K79: a relative path in a report begins like no command of a CI service', async (t) => {
  const [, found] = FINDINGS
  for (const [path, shown] of [
    ['.', 'a,b:c.md'], ['/', '/a,b:c.md'], ['##a', './##a/a,b:c.md'], ['::a', './::a/a,b:c.md']
  ] as const) {
    t.ok(print('text', [await report({ path, findings: found === undefined ? [] : [found] })])
      .startsWith(`${shown}  warning  `), path)
  }
  const validated = await report({ path: '::a', verdicts: [{ target: 'codex', verdict: 'refused', read: '' }] })
  t.ok(print('text', [validated], { targets: ['codex'] }).startsWith('./::a: codex refused\n'))
})

t.test('K79: annotations have a level, a place and the remedy; those of the whole skill are at ' +
  'its main file', async (t) => {
  t.equal(print(
    'github', [await report()]
  ), `::error file=skills/demo/SKILL.md,line=2,col=7,title=name_missing::a: 100 %25, {b}\\u001b. Do\\u000ait
::warning file=skills/demo/a%2Cb%3Ac.md,line=1,title=file_program::b. Do b
::notice file=skills/demo/c.md,line=3,title=file_program::c. Do c
::notice file=skills/demo/skill.md,line=1,title=body_empty::d. Do d
`)
})

t.test('K79: SARIF has a result for each finding, and says how many code scanning would not take', async (t) => {
  const read = async (findings: readonly Finding[], path = 'skills/demo') =>
    JSON.parse(print('sarif', [await report({ findings, path })])).runs[0]
  const { results, invocations, tool } = await read(FINDINGS)
  const location = (uri: string, region: object) =>
    [{ physicalLocation: { artifactLocation: { uri, uriBaseId: '%SRCROOT%' }, region } }]
  t.strictSame(results, [
    {
      ruleId: 'name_missing',
      level: 'error',
      message: { text: 'a: 100 %, {{b}}\u001b. Do\nit.' },
      locations: location('skills/demo/SKILL.md', { startLine: 2, startColumn: 7 }),
      properties: { targets: ['codex', 'spec'] }
    },
    {
      ruleId: 'file_program',
      level: 'warning',
      message: { text: 'b. Do b.' },
      locations: location('skills/demo/a%2Cb%3Ac.md', { startLine: 1 })
    },
    {
      ruleId: 'file_program',
      level: 'note',
      message: { text: 'c. Do c.' },
      locations: location('skills/demo/c.md', { startLine: 3 })
    },
    {
      ruleId: 'body_empty',
      level: 'note',
      message: { text: 'd. Do d.' },
      locations: location('skills/demo/skill.md', { startLine: 1 })
    }
  ])
  t.strictSame(invocations, [{ executionSuccessful: true }])
  const levels = new Map(tool.driver.rules.map(({
    id, defaultConfiguration: { level }
  }: { readonly id: string, readonly defaultConfiguration: { readonly level: string } }) => [id, level]))
  t.strictSame(['name_missing', 'file_type_mismatch', 'file_program'].map((code) => levels.get(code)),
    ['error', 'warning', 'note'])
  t.match((await read(FINDINGS.slice(3), '/other/demo')).results, [{
    locations: [{
      physicalLocation: { artifactLocation: { uri: 'file:///other/demo/skill.md', uriBaseId: undefined } }
    }]
  }])
  const many = (count: number) =>
    read(Array.from({ length: count }, () => ({ code: 'file_program', severity: 'info', message: 'c', fix: 'Do c' })))
  t.match(await many(25_000), { results: { length: 25_000 }, invocations: [{ toolExecutionNotifications: undefined }] })
  t.match(await many(25_001), {
    results: { length: 25_000 },
    invocations: [
      {
        executionSuccessful: true,
        toolExecutionNotifications: [
          { level: 'warning', message: { text: /^1 more findings are left out: code scanning takes 25000 in a run$/ } }
        ]
      }
    ]
  })
})
