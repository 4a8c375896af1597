import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { attack, BADURL, CANARY, checkLog, type Expected, FILES, isDirectory, noFile, SIBLINGS, TRAVERSAL } from './attacks/hostile-urls.ts'

t.test('K18 K19: hostile file paths', async (t) => {
  const service = await buildService(t, { files: FILES, options: { siblings: SIBLINGS } })
  const folder = join(service.root, 'demo')
  writeFileSync(join(folder, '..\\x'), CANARY)

  const tables: Readonly<Record<string, ReadonlyArray<readonly [appended: string, expected: Expected]>>> = {
    'what climbs out or is absolute': [
      '../../../etc/passwd', '..', '../SKILL.md', '../', '../demo/SKILL.md',
      '%2e%2e/%2e%2e/etc/passwd', '.%2e/x', '%2e./x',
      '..%2f..%2fetc%2fpasswd', '%2E%2E%2f%2E%2E%2fetc%2fpasswd',
      '../demo-evil/x.md', '../../skills-evil/x.md',
      'references/../../demo-evil/x.md', 'references/../..', '../README.md', '../../outside/secret.txt',
      '../'.repeat(5000),
      '..%5c..%5cetc%5cpasswd', '..\\..\\..\\Windows\\System32', 'references%5c..%5c..%5cx', '..%5c../x', '..%5cx',
      '/etc/passwd', '%2fetc/passwd', '//SKILL.md', `${folder}/SKILL.md`, encodeURIComponent(`${folder}/SKILL.md`),
      'C:/windows/win.ini', 'C%3a%5cwindows', '%5c%5chost%5cshare', '%5cetc%5cpasswd',
      '%00/../../x', 'up/demo-evil/x.md', 'up/../../x', 'secret.txt', 'up/README.md'
    ].map((path) => [path, TRAVERSAL] as const),
    'what is decoded once, and control characters': [
      ['%252e%252e%252fetc%252fpasswd', noFile('%2e%2e%2fetc%2fpasswd')],
      ['..%255c..%255c', noFile('..%5c..%5c')],
      ['%25252e', noFile('%252e')],
      ['SKILL.md%00', noFile('SKILL.md\0')],
      ['SKILL.md%00.png', noFile('SKILL.md\0.png')],
      ['.%00./x', noFile('.\0./x')],
      ['a%0d%0aSet-Cookie:x=1', noFile('a\r\nSet-Cookie:x=1')],
      ['a%09b', noFile('a\tb')],
      ['%1b[31m', noFile('\u001b[31m')],
      ['%7f', noFile('\u007f')]
    ],
    'what is not percent-encoded UTF-8': [
      '%', '%zz', '%c0%ae%c0%ae%c0%af', '%e0%80%af', '%ff', '%u002e%u002e%u2215etc', '%ed%a0%80', 'SKILL.md%'
    ].map((path) => [path, BADURL] as const),
    'what K8 hides, and a file taken for a folder': [
      '.git/config', 'sub/../.git/config', '.git', '.env', 'sub/.env', '.git/', '.git/HEAD', 'SKILL.md/', 'SKILL.md/x'
    ].map((path) => [path, noFile(path)] as const),
    'what K8 hides, encoded': [['%2eenv', noFile('.env')], ['.%65nv', noFile('.env')], ['%2egit%2fconfig', noFile('.git/config')]],
    'folders, and nothing': [
      ['references', isDirectory('references')],
      ['references/', isDirectory('references/')],
      ['.', isDirectory('.')],
      ['references/..', isDirectory('references/..')],
      ['', { statuses: [400], code: 'invalid_file_path', error: 'Invalid file path' }]
    ],
    'other spellings': [
      ['skill.md', noFile('skill.md')],
      ['Skill.md', noFile('Skill.md')],
      ['SKILL.md%20', noFile('SKILL.md ')],
      ['SKILL.md.', noFile('SKILL.md.')],
      ['SKILL.md::$DATA', noFile('SKILL.md::$DATA')],
      ['SKILL~1.MD', noFile('SKILL~1.MD')],
      ['CON', noFile('CON')],
      ['NUL', noFile('NUL')],
      ['aux.md', noFile('aux.md')],
      ['e%cc%81.md', noFile('e\u0301.md')],
      ['%e2%80%aegpj.md', noFile('\u202egpj.md')],
      ['%e2%80%8bSKILL.md', noFile('\u200bSKILL.md')],
      ['%ef%bc%8e%ef%bc%8e/x', noFile('\uff0e\uff0e/x')],
      ['file:///etc/passwd', noFile('file:///etc/passwd')],
      ['~/.ssh/id_rsa', noFile('~/.ssh/id_rsa')],
      ['$HOME/x', noFile('$HOME/x')],
      ['..;/..;/etc/passwd', noFile('..;/..;/etc/passwd')],
      ['.../.../x', noFile('.../.../x')],
      ['proc/self/environ', noFile('proc/self/environ')],
      ['__proto__', noFile('__proto__')],
      ['constructor', noFile('constructor')]
    ],
    'endless paths, and a backslash that does not climb': [
      ['a/'.repeat(2000), noFile('a/'.repeat(2000))],
      ['a'.repeat(256), noFile('a'.repeat(256))],
      ['%2e'.repeat(5000), noFile('.'.repeat(5000))],
      ['references%5ca.md', noFile('references\\a.md')]
    ]
  }
  for (const [name, rows] of Object.entries(tables)) {
    await t.test(name, async (t) => {
      for (const [appended, expected] of rows) {
        const response = await attack(t, service, `/skills/demo/files/${appended}`, expected)
        t.equal(response.headers['set-cookie'], undefined)
      }
    })
  }

  await t.test('the same paths are refused in the JSON form', async (t) => {
    for (const [appended, { statuses, error }] of Object.values(tables).flat()) {
      const response = await service.raw('GET', `/skills/demo/files/${appended}`, { headers: ['Accept: application/json'] })
      t.ok(statuses.includes(response.status), appended.slice(0, 60))
      if (error !== undefined) t.equal((response.json() as { error: string }).error, error)
      t.notMatch(response.text, CANARY)
    }
  })

  await t.test('other spellings of a path inside give the same bytes and ETag', async (t) => {
    const document = await service.raw('GET', '/skills/demo/files/SKILL.md')
    const reference = await service.raw('GET', '/skills/demo/files/references/a.md')
    t.equal(document.text, '# Demo\n')
    t.equal(reference.text, '# A\n')
    const rows = [
      ...['references%2fa.md', 'references//a.md', 'references/./a.md', './references/a.md', 'sub/../references/a.md'].map((path) => [path, reference] as const),
      ...['./SKILL.md', 'references/../SKILL.md', 'SKILL%2emd'].map((path) => [path, document] as const)
    ]
    for (const [appended, plain] of rows) {
      const response = await attack(t, service, `/skills/demo/files/${appended}`, { statuses: [200] })
      t.equal(response.text, plain.text, appended)
      t.equal(response.headers.etag, plain.headers.etag, appended)
    }
  })

  await t.test('K47: a query leads nowhere else', async (t) => {
    for (const query of ['?x=../../etc/passwd', '?raw', '?import&raw??', '?.svg?import', '#/../../x']) {
      await attack(t, service, `/skills/demo/files/SKILL.md${query}`, { statuses: [400], code: 'bad_query' })
    }
  })

  await t.test('raw bytes above 0x7f in the request line', async (t) => {
    const response = await service.raw('GET', '/skills/demo/files/\xe9.md')
    t.equal(response.status, 400)
    t.match(response.json(), { code: 'bad_request' })
  })

  await t.test('other request targets', async (t) => {
    for (const target of ['*', 'skills', '?', '#', '/.', '/..', '/../../etc/passwd']) {
      const response = await service.raw('GET', target)
      t.ok(response.status === 400 || response.status === 404, `${target}: ${response.status}`)
      t.notMatch(response.text, CANARY)
    }
    const absolute = await service.raw('GET', 'http://evil.example/skills/demo')
    t.ok(absolute.status === 200 || absolute.status === 403)
    t.notMatch(absolute.headerLines.join('\n') + absolute.text, 'evil.example')
  })
  await checkLog(t, service)
})
