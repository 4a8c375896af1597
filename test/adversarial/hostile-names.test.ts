import t from 'tap'
import { buildService } from '../helper/build.ts'
import { attack, BADURL, checkLog, type Expected, FILES, name16, NAME18, NOROUTE, noSkill, SIBLINGS } from './attacks/hostile-urls.ts'

/** Names as they stand in the URL, as decoded, and what the name alone gives; the other routes follow from that. */
const names: ReadonlyArray<readonly [encoded: string, name: string, kind: 'refused' | 'unknown']> = [
  ['..', '..', 'refused'],
  ['%2e%2e', '..', 'refused'],
  ['.%2e', '..', 'refused'],
  ['%2E.', '..', 'refused'],
  ['', '', 'refused'],
  ['demo%2ffiles%2fSKILL.md', 'demo/files/SKILL.md', 'refused'],
  ['demo%2f..', 'demo/..', 'refused'],
  ['demo%2f', 'demo/', 'refused'],
  ['a%5cb', 'a\\b', 'refused'],
  ['a\\b', 'a\\b', 'refused'],
  ['..%5cdemo', '..\\demo', 'refused'],
  ['foo..bar', 'foo..bar', 'refused'],
  ['demo..', 'demo..', 'refused'],
  ['demo%2f..%2fother', 'demo/../other', 'refused'],
  ['.', '.', 'unknown'],
  ['%2e', '.', 'unknown'],
  ['%252e%252e', '%2e%2e', 'unknown'],
  ['demo%252fx', 'demo%2fx', 'unknown'],
  ['demo%00', 'demo\0', 'unknown'],
  ['demo%0a', 'demo\n', 'unknown'],
  ['%1b[31m', '\u001b[31m', 'unknown'],
  ['Demo', 'Demo', 'unknown'],
  ['DEMO', 'DEMO', 'unknown'],
  ['demo%20', 'demo ', 'unknown'],
  ['%20demo', ' demo', 'unknown'],
  ['demo.', 'demo.', 'unknown'],
  ['demo::$DATA', 'demo::$DATA', 'unknown'],
  ['.hidden', '.hidden', 'unknown'],
  ['.git', '.git', 'unknown'],
  ['README.md', 'README.md', 'unknown'],
  ['__proto__', '__proto__', 'unknown'],
  ['constructor', 'constructor', 'unknown'],
  ['toString', 'toString', 'unknown'],
  ['hasOwnProperty', 'hasOwnProperty', 'unknown'],
  ['%e2%80%ae', '\u202e', 'unknown'],
  ['%e2%80%8bdemo', '\u200bdemo', 'unknown'],
  ['%ef%bc%8e%ef%bc%8e', '\uff0e\uff0e', 'unknown'],
  ['e%cc%81', 'e\u0301', 'unknown'],
  ['demo;x=1', 'demo;x=1', 'unknown'],
  ['a'.repeat(255), 'a'.repeat(255), 'unknown'],
  ['a'.repeat(1000), 'a'.repeat(1000), 'unknown']
]

type ExpectedOfName = (name: string, kind: 'refused' | 'unknown') => Expected
const byK16: ExpectedOfName = (name, kind) => kind === 'refused' ? name16(name) : noSkill(name)
const byK18: ExpectedOfName = (name, kind) => kind === 'refused' ? NAME18 : noSkill(name)
const notListed: ExpectedOfName = () => ({ statuses: [404], code: 'artifact_not_found' })
const DIGEST = '0'.repeat(64)

/** Routes with a name, which `*` stands for, and how they refuse a bad one. */
const namedRoutes: ReadonlyArray<readonly [route: string, expected: ExpectedOfName]> = [
  ['/skills/*', byK16],
  ['/skills/*/files', byK18],
  ['/skills/*/files/SKILL.md', byK18],
  ['/skills/*/archive.zip', byK18],
  ['/catalog/*', byK16],
  ['/.well-known/skills/*/SKILL.md', notListed],
  [`/.well-known/agent-skills/*/${DIGEST}/SKILL.md`, notListed],
  [`/.well-known/agent-skills/*/${DIGEST}/archive.zip`, notListed]
]

t.test('K4 K5: hostile skill names', async (t) => {
  const service = await buildService(t, { files: FILES, options: { siblings: SIBLINGS } })
  for (const [route, expected] of namedRoutes) {
    await t.test(`K16 K18: names that are no skill's, on ${route}`, async (t) => {
      for (const [encoded, name, kind] of names) await attack(t, service, route.replace('*', () => encoded), expected(name, kind))
    })
  }
  await t.test('what looks like a path behind the name', async (t) => {
    await attack(t, service, '/skills/../files/etc/passwd', NAME18)
    await attack(t, service, '/skills/%2e%2e/files/etc/passwd', NAME18)
    await attack(t, service, '/skills//files/SKILL.md', NAME18)
  })
  await t.test('a URL longer than a head may be', async (t) => {
    const response = await service.raw('GET', `/skills/${'a'.repeat(20_000)}`)
    t.equal(response.status, 431)
  })
  await t.test('K48: what is not percent-encoded UTF-8', async (t) => {
    for (const bad of ['%', '%zz', '%ff', '%c0%ae', '%e0%80%af', '%f0%80%80%af', '%ed%a0%80', '%u002e', '%zz<script>']) {
      for (const [route] of namedRoutes) {
        const response = await attack(t, service, route.replace('*', () => bad), BADURL)
        t.notMatch(response.text, '<script>', 'no markup is echoed')
      }
    }
  })
  await t.test('K47: what is no route', async (t) => {
    for (const target of [
      '//skills/demo', '/skills/demo/', '/SKILLS/demo', '/skills%2fdemo', '/skills;x=1/demo',
      '/skills../etc/passwd', '/skills/demo../SKILL.md', '/skills/demo/files../x', '/proc/self/environ', '/skills/demo/files%2fSKILL.md/x'
    ]) await attack(t, service, target, NOROUTE)
  })
  await t.test('letters that are encoded without need', async (t) => {
    const plain = await service.raw('GET', '/skills/demo')
    for (const [target, body] of [['/%73kills/demo', plain.text], ['/skills/demo/%66iles/SKILL.md', '# Demo\n'], ['/skills/%64emo', plain.text]] as const) {
      const response = await attack(t, service, target, { statuses: [200, 404] })
      if (response.status === 200) t.equal(response.text, body)
    }
  })
  await checkLog(t, service)
})
