import { existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfigFile } from '../../src/config/config-file.ts'
import { openRoots } from '../../src/config/roots.ts'
import type { Config } from '../../src/config/settings.ts'
import { ConfigError } from '../../src/config/setting.ts'
import { SILENT } from '../../src/core/shared/log.ts'

async function read (t: Test, text: string): Promise<unknown> {
  const file = join(t.testdir(), 'skillserve.yaml')
  writeFileSync(file, text)
  try {
    return await readConfigFile(file)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replace(file, 'FILE')
    throw error
  }
}

t.test('K83: a configuration file in YAML or JSON, with paths from its own folder', async (t) => {
  const expected = [
    { kind: 'git', name: 'team', url: 'https://git.example/team/skills.git', ref: 'main', path: 'skills', layout: 'auto', intervalMs: 60_000, auth: { secretFile: '/run/secrets/git' }, webhookSecretFile: join(t.testdir(), 'hook') },
    { kind: 'folder', path: join(t.testdir(), 'skills') }
  ]
  const sources = [
    { name: 'team', git: 'https://git.example/team/skills.git', ref: 'main', path: 'skills', layout: 'auto', interval: '60s', auth: { token_file: '/run/secrets/git' }, webhook: { secret_file: 'hook' } },
    { folder: './skills' }
  ]
  t.match(await read(t, JSON.stringify({ sources }, undefined, 2)), expected)
  const yaml = 'sources:\n  - archive: https://host.example/a.zip\n    optional: true\n    timeout: 5m\n  - oci: oci://host.example/team/skills:1\n    include: [a/**]\n  - s3: s3://bucket/x\n    endpoint: https://s3.example\n    marker: .revision\n'
  t.match(await read(t, yaml), [{ kind: 'archive', optional: true, timeoutMs: 300_000 }, { kind: 'oci', include: ['a/**'] }, { kind: 's3', endpoint: 'https://s3.example', marker: '.revision' }])
})

t.test('K83: what is wrong stops the start with the line and the key', async (t) => {
  const table: ReadonlyArray<readonly [string, RegExp]> = [
    ['sources:\n  - folder: a\n    colour: red\n', /^FILE:3: sources\[0\]\.colour is an unknown key/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: 5s\n', /^FILE:3: sources\[0\]\.interval must be at least 10s/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: 720h\n', /^FILE:3: sources\[0\]\.interval must be a duration up to 499h/],
    ['sources:\n  - git: https://h.example/r.git\n    timeout: 1800001s\n', /^FILE:3: sources\[0\]\.timeout must be a duration up to 499h/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: soon\n', /^FILE:3: .*duration/],
    ['sources:\n  - name: x\n', /^FILE:2: sources\[0\] needs one of folder, archive, /],
    ['sources:\n  - git: https://h.example/r.git\n    s3: s3://bbb\n', /^FILE:3: sources\[0\]\.s3 is a second source next to git: keep one/],
    ['sources:\n  - folder: a\n    ref: main\n', /^FILE:3: sources\[0\]\.ref is not a setting of a source of kind folder with the layout flat/],
    ['sources:\n  - git: https://u:hunter2@h.example/r.git\n', /^FILE:2: .*password/],
    ['sources:\n  - git: https://h.example/r.git\n    ref: --x\n', /^FILE:2: .*a ref is/],
    ['sources:\n  - git: https://h.example/r.git#v1\n', /^FILE:2: sources\[0\]\.git cannot be used: .*# has keys/],
    [`sources:\n  - archive: https://h.example/a.zip#sha256:${'a'.repeat(64)}\n`, /^FILE:2: .*# has keys/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: minio:9000\n', /^FILE:2: sources\[0\]\.s3 cannot be used: the endpoint of a bucket/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: https://me:hunter2@s3.example\n', /^FILE:2: .*without credentials/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: http://s3.example\n', /^FILE:2: .*https/],
    ['sources:\n  - s3: s3://bucket/team#public\n', /^FILE:2: .*keys of its own/],
    ['sources:\n  - oci: oci://host.example/team/skills:1#sub\n', /^FILE:2: .*# has keys/],
    ['sources:\n  - git: github.com/owner/repo\n', /^FILE:2: sources\[0\]\.git cannot be used: it is not an address such as https:\/\/host/],
    ['sources:\n  - git: ext://h.example/x\n', /^FILE:2: .*it begins with https/],
    ['sources:\n  - git: git@h.example:team/skills.git\n', /^FILE:2: .*ssh:\/\/user@host\/path/],
    ['sources:\n  - git: s3://bucket/x\n', /^FILE:2: .*it begins with https/],
    ['- folder: ./a\n', /^FILE:1: must be a mapping with the list sources$/],
    ['sources:\n  - ./a\n', /^FILE:2: sources\[0\] must be a mapping such as folder: \.\/skills$/],
    ['source: []\n', /^FILE:1: source is an unknown key; allowed: \$schema, sources, did you mean "sources"\?$/],
    ['sources:\n  - folder: ./a\n    layout: tre\n', /^FILE:3: sources\[0\]\.layout must be one of auto, .*, did you mean "tree"\?$/],
    ['sources: 3\n', /^FILE:1: sources must be a list/]
  ]
  for (const [text, expected] of table) {
    const refusal = await read(t, text)
    t.match(refusal, expected, text)
    t.notMatch(refusal, /hunter2/)
  }
})

t.test('K83: folders and sources keep their order, and folders alone need no state folder', async (t) => {
  const stateDir = join(t.testdir({ 'c.yaml': 'sources:\n  - folder: x\n    name: mine\n' }), 'state')
  const config = { skillsDirs: ['/a', '/b'], personalDir: '/p', configFile: join(t.testdirName, 'c.yaml'), stateDir, layout: undefined }
  const { sources } = await openRoots(config, { log: SILENT, env: {} })
  const paths = ['/a', '/b', join(t.testdirName, 'x'), '/p']
  t.strictSame(sources.roots.map(({ path }) => path), paths)
  t.match(sources.roots, [{ name: 'a', type: 'project' }, {}, { name: 'mine' }, { type: 'personal' }])
  t.notOk(existsSync(stateDir))
  const mixed = await openRoots({ ...config, skillsDirs: ['/a', 'git+file:///srv/none', '/b'], personalDir: 'git+file:///srv/own' }, { log: SILENT, env: {} })
  t.teardown(() => mixed.sources.close())
  t.match(mixed.sources.roots, [{ path: '/a' }, { name: 'none', listed: Object }, { path: '/b' }, { name: 'mine' }, { name: 'own', listed: Object, type: 'personal' }])
})

t.test('K83, K73: a state folder or an audit log among the skills is refused with both settings', async (t) => {
  const folder = t.testdir({ skills: {}, mine: {}, linked: {}, apart: {} })
  const at = (...names: string[]): string => join(folder, ...names)
  symlinkSync(at('skills'), at('also'))
  symlinkSync(at('skills', 'audit.jsonl'), at('later.jsonl'))
  writeFileSync(at('file.yaml'), 'sources:\n  - folder: ./skills\n')
  const base = { skillsDirs: ['https://127.0.0.1:1/a.zip'], personalDir: undefined, linkTargets: undefined, configFile: undefined, layout: undefined }
  const table: ReadonlyArray<readonly [folder: string, path: string, config: Partial<Config>]> = [
    ['skills', at('skills', '.state'), { skillsDirs: [...base.skillsDirs, at('skills')] }],
    ['skills', at('skills'), { skillsDirs: [...base.skillsDirs, at('skills')], layout: 'tree' }],
    ['skills', at('also', 'a', 'b'), { skillsDirs: [...base.skillsDirs, at('skills')] }],
    ['also', at('skills', 'a'), { skillsDirs: [...base.skillsDirs, at('also')] }],
    ['skills', at('later.jsonl'), { skillsDirs: [...base.skillsDirs, at('skills')] }],
    ['mine', at('mine', 'a'), { personalDir: at('mine') }],
    ['linked', at('linked', 'a'), { linkTargets: [at('linked')] }],
    ['skills', at('skills', 'a'), { configFile: at('file.yaml') }]
  ]
  for (const [inside, path, more] of table) {
    const config = { ...base, ...more }
    const message = (setting: string) => `${setting}: ${JSON.stringify(path)} is inside ${JSON.stringify(at(inside))}, ` +
      'whose files are served: choose a place outside all folders of skills'
    await t.rejects(openRoots({ ...config, stateDir: path }, { log: SILENT, env: {} }), { name: 'ConfigError', message: message('STATE_DIR or --state-dir') })
    t.notOk(existsSync(join(path, 'lock')))
    const apart = { ...config, stateDir: at('apart') }
    await t.rejects(openRoots({ ...apart, auditLog: path }, { log: SILENT, env: {} }), { name: 'ConfigError', message: message('AUDIT_LOG') })
    const { sources } = await openRoots({ ...apart, auditLog: at('skillset') }, { log: SILENT, env: {} })
    await sources.close()
  }
  const plain = await openRoots({ ...base, skillsDirs: [at('skills')], stateDir: at('skills') }, { log: SILENT, env: {} })
  t.strictSame(plain.sources.status, [], 'folders need no state')
  await t.rejects(openRoots({ ...base, skillsDirs: [...base.skillsDirs, at('skills')], stateDir: undefined }, { log: SILENT, env: { XDG_CACHE_HOME: at('skills') } }), { name: 'ConfigError' }, 'the default counts too')
})
