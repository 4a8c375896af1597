import fc from 'fast-check'
import t from 'tap'
import { isAddress, outlineOf, splitRoots } from '../../src/sources/address/address.ts'
import { AddressError } from '../../src/sources/source-error.ts'
import { parseAddress, type Source } from '../../src/sources/kinds.ts'

function read (text: string): Source | string {
  try {
    return parseAddress(text)
  } catch (error) {
    if (error instanceof AddressError) return error.message
    throw error
  }
}

t.test('K83: addresses of all kinds', async (t) => {
  const table: ReadonlyArray<readonly [string, object]> = [
    ['git+https://git.example/team/skills.git',
      { kind: 'git', name: 'skills', url: 'https://git.example/team/skills.git', path: '' }],
    ['git+https://git.example/team/skills.git#main:go/skills', { ref: 'main', path: 'go/skills' }],
    ['git+https://git.example/team/skills.git#:skills', { path: 'skills' }],
    ['git+ssh://git@git.example:2222/team/skills.git',
      { kind: 'git', url: 'ssh://git@git.example:2222/team/skills.git' }],
    ['git+file:///srv/skills', { kind: 'git', url: 'file:///srv/skills', name: 'skills' }],
    ['git+http://127.0.0.1:3000/a/b.git', { kind: 'git', url: 'http://127.0.0.1:3000/a/b.git' }],
    ['https://github.com/anthropics/skills', { kind: 'git', url: 'https://github.com/anthropics/skills', path: '' }],
    ['https://github.com/o/r/tree/main/skills',
      { kind: 'git', url: 'https://github.com/o/r', ref: 'main', path: 'skills' }],
    ['https://github.com/o/r/blob/main/skills/a/SKILL.md', { ref: 'main', path: 'skills/a' }],
    ['https://gitlab.example/g/h/r/-/tree/v1/x',
      { kind: 'git', url: 'https://gitlab.example/g/h/r', ref: 'v1', path: 'x' }],
    ['https://codeberg.org/o/r/src/branch/main/x', { url: 'https://codeberg.org/o/r', ref: 'main', path: 'x' }],
    ['git+https://github.com/o/r/tree/main/skills', { url: 'https://github.com/o/r' }],
    ['git+https://git.example/r.git#20240101:skills', { ref: '20240101', path: 'skills' }],
    ['git+https://git.example/r.git#abc1234', { ref: 'abc1234', path: '' }],
    ['https://host.example/skills.tar.gz', { kind: 'archive', name: 'skills', path: '' }],
    ['https://host.example/a/skills.zip#pack/skills', { kind: 'archive', path: 'pack/skills' }],
    ['https://github.com/o/r/archive/refs/heads/main.zip', { kind: 'archive', name: 'main' }],
    ['https://github.com/o/r/tree/main/skills.zip', { kind: 'archive' }],
    ['s3://bucket/a/prefix/', { kind: 's3', bucket: 'bucket', prefixPath: 'a/prefix/', name: 'prefix' }],
    ['oci://registry.example:5000/team/skills:1.4',
      { kind: 'oci', registry: 'registry.example:5000', repository: 'team/skills', reference: '1.4' }],
    [`oci://registry.example/skills@sha256:${'a'.repeat(64)}`, { reference: `sha256:${'a'.repeat(64)}` }]
  ]
  for (const [text, expected] of table) t.match(read(text), expected, text)
  for (const type of ['zip', 'skill', 'tar.gz', 'tgz', 'tar.zst', 'tar', 'ZIP']) {
    t.match(read(`https://host.example/a.${type}`), { kind: 'archive' }, type)
  }
})

t.test('K83: what is refused says why, and repeats no secret', async (t) => {
  const table: ReadonlyArray<readonly [string, RegExp]> = [
    ['git+https://user:hunter22@git.example/r.git', /password/],
    ['git+https://ghp_hunter22@git.example/r.git', /secret/],
    ['https://user:hunter22@host.example/a.zip', /password/],
    ['git@git.example:team/skills.git', /git\+ssh:\/\//],
    ['git+http://git.example/r.git', /this machine only/],
    ['http://host.example/a.zip', /this machine only/],
    ['ftp://host.example/a.zip', /ftp:\/\/ is not an address/],
    ['https://host.example/page', /git\+https/],
    ['git+https://git.example/r.git#--upload-pack=x', /is not a ref of git/],
    ['git+https://git.example/r.git#a..b', /is not a ref of git/],
    ['git+https://git.example/r.git#main:../x', /leads out of the source/],
    ['git+ssh://-oProxyCommand=x/r.git', /"-"|such as/],
    ['git+ssh://git@git.example/-oProxyCommand=x', /"-"/],
    ['git+ssh://-oProxyCommand=x@git.example/r.git', /"-"/],
    ['git+file:///-x', /"-"/],
    ['https://github.com/o', /git\+https/],
    ['oci://registry.example/skills', /needs a tag or a digest/],
    ['s3://B/x', /s3:\/\/bucket/],
    ['https://hunter22@git.example/team/skills', /secret/],
    ['http://git.example/team/skills', /this machine only/],
    ['s3://bucket/team#public', /nothing stands behind #/],
    ['s3://bucket/team?public', /s3:\/\/bucket/],
    ['s3://bucket/%zz', /percent-encoded/],
    ['oci://registry.example/skills:1#%zz', /percent-encoded/],
    ['git+https://', /such as https:\/\/host\/path$/],
    ['https://#main', /such as https:\/\/host\/path$/],
    ['s3://', /s3:\/\/bucket/],
    ['git+https://git.example:port/r.git', /such as https:\/\/host\/path$/]
  ]
  for (const [text, expected] of table) {
    const refusal = read(text)
    t.match(refusal, expected, text)
    t.notMatch(refusal, /hunter22/)
  }
})

t.test('K83: a sentence about an address names its protocol and host, and nothing that may be a secret', async (t) => {
  for (const [text, outline] of [
    ['git+https://', 'git+https://…'],
    ['git+https://git.example:8443/hunter22#hunter22', 'git+https://git.example:8443/…'],
    ['git+https://user:hunter22@git.example/r.git', 'git+https://…'],
    ['git+https://user:hun/ter22@git.example/r.git', 'git+https://…'],
    ['https://user:22/7@git.example/r.git', 'https://…'],
    ['https://hunter22?a@b', 'https://…'],
    ['git+ssh://hun ter22@x', 'git+ssh://…'],
    ['git@git.example:hunter22', '…']
  ] as const) t.equal(outlineOf(text), outline, text)
})

t.test('K83: a variable is split at delimiters, but not inside an address', async (t) => {
  t.strictSame(splitRoots('/a:./b', ':'), ['/a', './b'])
  t.strictSame(splitRoots('git+https://h:8443/r.git#main:skills:./b:oci://h:5000/r:1.4:/srv:https://x/a.zip', ':'),
    ['git+https://h:8443/r.git#main:skills', './b', 'oci://h:5000/r:1.4', '/srv', 'https://x/a.zip'])
  t.strictSame(splitRoots('a::b', ':'), ['a', '', 'b'])
  t.strictSame(splitRoots('C:\\a;https://x/a.zip', ';'), ['C:\\a', 'https://x/a.zip'])
})

t.test('folders are no addresses', async (t) => {
  for (const text of ['skills', './a', '/a/b', '../x', 'C:\\skills', 'a@b', './git@x:y']) t.notOk(isAddress(text), text)
})

t.test('any text is an address, or refused', async () => {
  fc.assert(fc.property(fc.oneof(fc.string(),
    fc.tuple(fc.constantFrom('git+https://', 'git+ssh://', 'https://', 's3://', 'oci://', 'git+file://'),
      fc.string()).map((parts) => parts.join(''))), (text) => {
    read(text)
    return splitRoots(text, ':').join(':') === text
  }))
})
