import { readdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import fc from 'fast-check'
import { validate } from '../../src/validate/validate-skills.ts'
import { withSkills } from '../../src/cli/with-skills.ts'
import type { SkillReport } from '../../src/validate/report.ts'
import { TARGET_NAMES, type TargetName } from '../../src/verdicts/targets.ts'
import { zipOf, type ZipEntry } from '../helper/archives.ts'
import { buildService, type Service } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { openPage } from '../helper/pages.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))

interface Validation {
  readonly skill_name: string
  readonly valid: boolean
  readonly revision: string | null
  readonly targets: ReadonlyArray<{ readonly target: string, readonly verdict: string }>
  readonly findings: ReadonlyArray<{ readonly code: string, readonly message: string }>
  readonly code?: string
}

/** What the command reports of a folder. */
async function reportsOn (folder: string, targets: readonly TargetName[] | undefined): Promise<readonly SkillReport[]> {
  const reports: SkillReport[] = []
  const reporter = { skill: (report: SkillReport) => { reports.push(report) }, end () {} }
  await withSkills({ positionals: [folder], options: {} }, { env: {}, cwd: '/', warn () {} }, (opened) =>
    validate(opened, { targets, reporter }))
  return reports
}

async function send (service: Service, body: string | Buffer,
  { query = '', type = 'text/markdown', headers = {} } = {}): Promise<{
    status: number
    json: Validation
  }> {
  const answer = await fetch(`${service.url}/validate${query}`, {
    method: 'POST',
    body: new Uint8Array(Buffer.from(body)),
    headers: {
      ...type !== '' && { 'content-type': type }, ...headers
    }
  })
  return { status: answer.status, json: await answer.json() as Validation }
}

function file (name: string, text: string, more: Partial<ZipEntry> = {}): ZipEntry {
  return { name, bytes: Buffer.from(text), ...more }
}

const DEMO = '---\nname: demo\ndescription: What demo is for\n---\n# Demo\n'

t.test('K80: POST /validate', async (t) => {
  const service = await buildService(t,
    { files: { demo: { 'SKILL.md': '---\nname: other\ndescription: x\n---\n[a](b.md)\n' } } })

  await t.test('a SKILL.md is validated as it is, for the format or for the targets that were chosen', async (t) => {
    t.match(await send(service, DEMO), {
      status: 200,
      json: {
        skill_name: 'demo',
        valid: true,
        revision: null,
        findings: [],
        targets: [{ target: 'spec', verdict: 'ok' }],
        tokens: { all_files: null }
      }
    })
    const { json } = await send(service, DEMO, { query: '?folder=other&target=spec,codex,vscode,gh-skill' })
    t.strictSame(json.targets.map(({ target, verdict }) => [target, verdict]),
      [['spec', 'refused'], ['codex', 'ok'], ['vscode', 'warned'], ['gh-skill', 'refused']])
    t.match(json.findings, [{ code: 'name_folder_mismatch', severity: 'error', file: 'SKILL.md', line: 2, column: 7 }])
    t.match(await send(service, `${DEMO}[a](b.md)`), { json: { findings: [] } }, 'nobody knows the other files')
    t.match(await send(service, ''), {
      status: 200, json: { valid: false, findings: [{ code: 'frontmatter_missing' }] }
    })
    t.match(await send(service, Buffer.from([0x2d, 0xff])),
      { status: 200, json: { findings: [{ code: 'main_file_not_utf8' }] } })
    t.match(await send(service, `${DEMO}${'x'.repeat(1_100_000)}`, { query: '?folder=demo' }),
      { status: 200, json: { findings: [{ code: 'main_file_too_large' }] } })
  })

  await t.test('a ZIP is a skill at its root or in its one folder', async (t) => {
    const type = 'application/zip'
    for (const entries of [[file('SKILL.md', DEMO), file('b.md', 'x')],
      [file('demo/SKILL.md', DEMO), file('demo/b.md', 'x'), file('__MACOSX/demo/x', 'x')]]) {
      t.match(await send(service, zipOf(entries), { type }),
        { status: 200, json: { skill_name: 'demo', valid: true, findings: [], tokens: { all_files: /^\d+$/ } } })
    }
    t.match(await send(service, zipOf([file('other/SKILL.md', DEMO)]), { type }),
      { json: { skill_name: 'other', findings: [{ code: 'name_folder_mismatch' }] } })
    t.match(await send(service, zipOf([file('SKILL.md', `${DEMO}[a](b.md)`)]), { type }),
      { json: { findings: [{ code: 'body_link_missing' }] } })
    t.match(await send(service, zipOf([file('a/SKILL.md', DEMO), file('b/SKILL.md', DEMO)]), { type }),
      { json: { findings: [{ code: 'main_file_missing', message: /skills below: 'a', 'b'/ }] } })
    t.match(await send(service, zipOf([file('SKILL.md', DEMO), file('big.bin', 'x', { claimed: 40_000_000 })]), {
      type, query: '?target=anthropic-upload'
    }), {
      status: 400
    }, 'the ratio')
  })

  await t.test('a link in a ZIP counts as on the disk', async (t) => {
    const type = 'application/zip'
    const link = (target: string) => zipOf(
      [file('demo/SKILL.md', `${DEMO}[a](l)`), file('demo/d/x.md', 'x'), file('demo/l', target, { mode: 0o120777 })])
    t.match(await send(service, link('d/x.md'), { type }), { json: { findings: [] } })
    t.match(await send(service, link('d'), { type }),
      { json: { findings: [{ code: 'link_to_folder' }, { code: 'body_link_missing' }] } })
    t.match(await send(service, link('missing'), { type }),
      { json: { findings: [{ code: 'link_outside' }, { code: 'body_link_missing' }] } })
    t.match(await send(service, link('../../etc/passwd'), { type }),
      { json: { findings: [{ code: 'link_outside' }, { code: 'body_link_missing' }] } })
  })

  await t.test('an ignore file in a ZIP hides files, as on the disk', async (t) => {
    const type = 'application/zip'
    const parts = [file('demo/SKILL.md', `${DEMO}[a](drafts/b.md)`), file('demo/drafts/b.md', 'x')]
    t.match(await send(service, zipOf(parts), { type }), { json: { findings: [] } })
    t.match(await send(service, zipOf([...parts, file('demo/.skillignore', 'drafts/\n')]), { type }),
      { json: { findings: [{ code: 'body_link_missing' }] } })
    t.match(await send(service, zipOf([...parts, file('demo/.skillignore', '*a*b*c*d')]), { type }),
      { json: { findings: [{ code: 'ignore_file_unusable' }] } })
    t.match(await send(service, zipOf([...parts, file('demo/.skillignore', 'x\n'.repeat(50_000))]), { type }),
      { json: { findings: [{ code: 'ignore_file_unusable', message: /has more than \d+ bytes/ }] } })
  })

  // test/sources/archive.test.ts sends more of them to the same reader.
  await t.test('hostile archives are refused, or harmless', async (t) => {
    const type = 'application/zip'
    const refused = { status: 400, json: { code: 'invalid_archive' } }
    t.match(await send(service, zipOf([file('SKILL.md', DEMO), file('bomb', 'x', { claimed: 4_000_000_000 })]),
      { type }), refused)
    t.match(await send(service, zipOf([file('SKILL.md', 'x'.repeat(900_000), { claimed: 10 })]), { type }), refused,
      'more than it says')
    for (const name of ['../SKILL.md', 'C:/SKILL.md']) {
      t.match(await send(service, zipOf([file(name, DEMO)]), { type }), refused, name)
    }
    t.match(await send(service, zipOf([{
      name: Buffer.from([0x61, 0xff]), bytes: Buffer.from('x')
    }, file('SKILL.md', DEMO)]), { type }), {
      json: { detail: /is not a file name in UTF-8/ }
    })
    t.match(await send(service, zipOf(Array.from({ length: 20_001 }, (_, index) => file(`f${index}`, ''))), { type }),
      { json: { detail: /more than 20000 files and folders/ } })
    const deep = (index: number): string =>
      `${Array.from({ length: 30 }, (_, level) => `d${index}-${level}`).join('/')}/f`
    t.match(await send(service, zipOf([file('SKILL.md', DEMO), ...Array.from({
      length: 700
    }, (_, index) => file(deep(index), ''))]), { type }), {
      json: { detail: /more than 20000 files and folders/ }
    })
    t.match(await send(service, zipOf([file('SKILL.md', DEMO)]).subarray(0, -4), { type }), refused, 'cut')
    t.match(await send(service, zipOf([file('SKILL.md', '/etc/passwd', { mode: 0o120777 })]), { type }),
      { json: { findings: [{ code: 'main_file_missing' }] } }, 'a link is no file')
    t.match(await send(service, zipOf([file('SKILL.md', 'x'.repeat(2_000_000))]), { type }),
      { json: { findings: [{ code: 'main_file_too_large' }] } })
    t.match(await send(service, Buffer.alloc(10 * 1_048_576 + 1), { type }), { status: 413 })
    for (const other of ['application/x-zip-compressed', 'application/octet-stream']) {
      t.match(await send(service, zipOf([file('SKILL.md', DEMO)]), { type: other }),
        { status: 200, json: { skill_name: 'demo' } }, other)
    }
    await t.resolves(fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const { status } = await send(service,
        Buffer.concat([Buffer.from('PK\u0003\u0004'), bytes, zipOf([file('SKILL.md', DEMO)]).subarray(20)]), { type })
      return status === 200 || status === 400
    }), { numRuns: 30 }))
  })

  await t.test('what cannot be validated is a problem', async (t) => {
    t.match(await send(service, '{}', { type: 'application/json' }), { status: 415 })
    t.match(await send(service, DEMO, { type: 'application/zip' }),
      { status: 400, json: { code: 'invalid_archive', detail: 'These bytes are not a ZIP archive' } })
    for (const type of ['application/json', 'application/json; charset=latin1', 'image/png', '']) {
      t.match(await send(service, DEMO, { type }),
        { status: 415, json: { detail: 'Send a SKILL.md as text/markdown, or a ZIP as application/zip' } }, type)
    }
    t.match(await send(service, DEMO, { headers: { 'content-encoding': 'gzip' } }), { status: 415 })
    t.match(await send(service, DEMO, { query: '?target=nope' }),
      { status: 400, json: { code: 'bad_query', detail: /'nope', allowed: spec, .*all/ } })
    t.match(await send(service, DEMO, { query: '?folder=a%2Fb' }), { status: 400, json: { code: 'bad_query' } })
  })

  await t.test('the same in GET /catalog/:name', async (t) => {
    const answer = await service.fetch('/catalog/demo?target=spec,codex')
    t.match(answer.json(), {
      valid: false,
      tokens: { listed: /\d/ },
      targets: [{ target: 'spec', verdict: 'refused' }, { target: 'codex', verdict: 'ok' }],
      findings: [{ code: 'name_folder_mismatch' }, { code: 'body_link_missing', severity: 'warning' }]
    })
    t.notOk('targets' in ((await service.fetch('/catalog/demo')).json() as object))
    t.match((await service.fetch('/catalog/demo?target=nope')).json(), { status: 400, code: 'bad_query' })
  })
})

t.test('K79, K80: command, route and catalog say the same of the same bytes', async (t) => {
  const service = await buildService(t, { files: { demo: { 'SKILL.md': DEMO, 'b.md': 'x', 'c.png': 'x', d: 'x' } } })
  const line = fc.constantFrom('name: demo', 'name: other', 'name: Demo Two', 'name: 3', 'description: What',
    'description: Use when: x', 'description: a <b> c', 'description: >', '  folded', 'metadata:', '  a: 1', '  b: x',
    'tags: [a, b]', 'allowed-tools: Read, Write', '\tx: y', 'license: 1', 'x: "open', '', '# c')
  const body = fc.constantFrom('# Demo\n', '', '[a](b.md)\n', '[a](c.md) [d](../e.md)\n', 'Run $ARGUMENTS\n',
    'a\u200bb\n')
  const targets = fc.constantFrom<readonly TargetName[] | undefined>(undefined, ['codex'], TARGET_NAMES)
  const begin = fc.constantFrom('', 'text', '#!/bin/sh\n', '\x7fELF', 'MZ\0', 'PK\x03\x04', '\x89PNG\r\n\x1a\n',
    '%PDF-1', gzipSync('x').toString('latin1'), 'a'.repeat(257) + 'ustar', 'a'.repeat(1_000))
  const other = fc.tuple(begin, fc.constantFrom(0, 1_000, 300_000)).map(([text, more]) =>
    Buffer.from(text + 'b'.repeat(more), 'latin1'))
  await fc.assert(fc.asyncProperty(fc.array(line, {
    maxLength: 6
  }), body, fc.boolean(), targets, fc.tuple(other, other, other), async (lines, rest, isCrlf, chosen, others) => {
    const text = `---\n${lines.map((each) => `${each}\n`).join('')}---\n${rest}`
    const bytes = Buffer.from(isCrlf ? text.replaceAll('\n', '\r\n') : text)
    writeFileSync(join(service.root, 'demo/SKILL.md'), bytes)
    const parts = ['b.md', 'c.png', 'd'].map((name, index) =>
      ({ name: `demo/${name}`, bytes: others[index] ?? Buffer.alloc(0) }))
    for (const { name, bytes } of parts) writeFileSync(join(service.root, name), bytes)
    const query = chosen === undefined ? '' : `?target=${chosen.join(',')}`
    const entry = (await service.fetch(`/catalog/demo${query}`)).json() as Validation
    const sent = (await send(service, zipOf([{ name: 'demo/SKILL.md', bytes }, ...parts]),
      { type: 'application/zip', query })).json
    const reports = await reportsOn(service.root, chosen)
    t.strictSame(sent.findings, entry.findings, 'a ZIP as the catalog')
    t.strictSame(JSON.parse(JSON.stringify(reports[0]?.findings)), entry.findings, 'the command as the catalog')
    t.equal(reports[0]?.revision, entry.revision)
    if (chosen !== undefined) t.strictSame([sent.targets, reports[0]?.verdicts], [entry.targets, entry.targets])
    if (chosen === TARGET_NAMES) {
      const { result } = await (await fetch(`${service.url}/mcp`, modernRequest({ method: 'skills/list' }))).json() as {
        readonly result: { readonly skills: readonly object[] }
      }
      t.equal(result.skills.length,
        Number(entry.targets.some(({ target, verdict }) => target === 'mcp' && verdict !== 'not_loaded')),
        'MCP lists what its verdict says')
    }
    const page = await openPage(`${service.url}/ui/skills/demo`)
    for (const { code } of entry.findings) t.ok(page.text.includes(`<code>${code}</code>`), code, { diagnostic: false })
  }), { numRuns: 15 })
})

t.test('K79: the example skills are clean for every target', async (t) => {
  const reports = await reportsOn(EXAMPLES, TARGET_NAMES)
  t.equal(reports.length, readdirSync(EXAMPLES).length)
  for (const { skill, findings, verdicts } of reports) {
    t.strictSame(findings, [], skill.name)
    t.ok(verdicts.every(({ verdict }) => verdict === 'ok'), skill.name)
  }
})
