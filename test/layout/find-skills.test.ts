import t from 'tap'
import { findSkills } from '../../src/layout/find-skills.ts'
import type { FoundSkills, LayoutOptions } from '../../src/layout/layout.ts'
import { type SourceEntry, SourceTree } from '../../src/sources/publish/source-tree.ts'
import { skillText } from '../helper/skills.ts'

/** A tree of files by path; a text that begins with `->` is a link. */
async function treeOf (files: Readonly<Record<string, string>>): Promise<SourceTree> {
  const entries = Object.entries(files).map(([path, text]): SourceEntry =>
    text.startsWith('->')
      ? { path, kind: 'link', id: '', size: 1, target: text.slice(2) }
      : { path, kind: 'file', id: path, size: text.length })
  return new SourceTree({
    entries,
    read: async (wanted, use) => {
      for (const file of wanted) await use(file, Buffer.from(files[file.entry.path] ?? ''))
    }
  })
}

async function find (files: Readonly<Record<string, string>>,
  options: Partial<LayoutOptions> = {}): Promise<FoundSkills> {
  return await findSkills(await treeOf(files), { layout: 'auto', name: 'repo', ...options })
}

function skillsAt (...paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [`${path}/SKILL.md`, skillText('x')]))
}

function paths ({ skills }: FoundSkills): Record<string, string> {
  return Object.fromEntries(skills.map(({ name, path }) => [name, path]))
}

t.test('K86: auto finds skills in all the usual places', async (t) => {
  const found = await find({
    ...skillsAt('skills/a', 'skills/group/b', 'skills/.curated/c', '.claude/skills/d', 'e', 'docs/deep/f',
      'skills/.hidden/g', 'skills/group/.curated/h', '.curated/i'),
    'README.md': ''
  })
  t.strictSame(paths(found), {
    a: 'skills/a', c: 'skills/.curated/c', b: 'skills/group/b', d: '.claude/skills/d', e: 'e'
  })
  t.equal(found.layout, 'tree')
  t.strictSame(paths(await find(skillsAt('docs/deep/f'))), { f: 'docs/deep/f' }, 'else anywhere')
  const agents = skillsAt('.windsurf/skills/w', '.kiro/skills/k', '.opencode/skill/o')
  t.strictSame(paths(await find({ ...agents, ...skillsAt('docs/deep/f') })), {
    k: '.kiro/skills/k', o: '.opencode/skill/o', w: '.windsurf/skills/w'
  }, 'folders of any agent')
  t.strictSame((await find(skillsAt('a', '.x/b', '.y/skills/c', '.z'))).leftOut,
    [{ path: '.x', reason: 'excluded' }, { path: '.z', reason: 'excluded' }])
})

t.test('K86: a repository that is one skill is one, by its own name', async (t) => {
  const found = await find({ 'SKILL.md': skillText('my-skill'), 'x/y.txt': '' })
  t.match(found, { layout: 'single', skills: [{ name: 'my-skill', path: '' }] })
  t.match(await find({ 'SKILL.md': 'no frontmatter' }), { layout: 'single', skills: [{ name: 'repo' }] })
  t.match(await find({ 'SKILL.md': skillText('Not a name!') }), { skills: [{ name: 'repo' }] })
})

t.test('K86: a SKILL.md at the top beside skills/ hides none of them', async (t) => {
  t.strictSame(paths(await find({ 'SKILL.md': skillText('top'), ...skillsAt('skills/a') })), { a: 'skills/a', top: '' })
})

t.test('K86: of two skills with one name the first counts, and the other is named', async (t) => {
  const found = await find(skillsAt('plugins/a/skills/x', 'plugins/b/skills/x'))
  t.strictSame(paths(found), { x: 'plugins/a/skills/x' })
  t.match(found.leftOut, [{ path: 'plugins/b/skills/x', reason: 'shadowed', by: 'plugins/a/skills/x' }])
})

t.test('K86: foreign code and samples are not searched, but by name in a folder of skills', async (t) => {
  const folders = ['node_modules/p/skills/x', 'dist/y', 'sub/tests/z', 'examples/e', 'skills/test', 'skills/build',
    'skills/node_modules/q']
  const found = await find(skillsAt(...folders), { layout: 'tree' })
  t.strictSame(Object.keys(paths(found)).sort(), ['build', 'e', 'test'])
  t.match(found.leftOut.map(({ path }) => path).sort(), ['dist', 'node_modules', 'skills/node_modules', 'sub/tests'])
})

t.test('K86: links to skills count, links in circles and out of the tree do not', async (t) => {
  const found = await find({
    ...skillsAt('real/a'),
    'skills/a': '->../real/a',
    'skills/b': '->../../outside',
    'skills/c': '->/etc',
    'skills/loop': '->.',
    'skills/self': '->self',
    '.claude/skills': '->../skills'
  })
  t.strictSame(paths(found), { a: 'skills/a' })
  t.strictSame(found.leftOut.filter(({ reason }) => reason === 'shadowed'), [], 'one folder in two places is one skill')
})

t.test('K86: a link counts at its own depth, not at that of the group it lies in', async (t) => {
  const found = await find({
    ...skillsAt('pdf', 'g/more', 'zz/other', 'z/pdf'),
    'g/pdf': '->../zz/other',
    'g/aa': '->../zz/other',
    'z/zz/deep': '->../../zz/other'
  }, {
    layout: 'tree'
  })
  t.strictSame(paths(found), { pdf: 'pdf', aa: 'g/aa', more: 'g/more', other: 'zz/other', deep: 'z/zz/deep' })
  t.strictSame(found.skills.map(({ path }) => path), ['pdf', 'g/aa', 'g/more', 'zz/other', 'z/zz/deep'],
    'by depth and path')
  t.match(found.leftOut,
    [{ path: 'g/pdf', reason: 'shadowed', by: 'pdf' }, { path: 'z/pdf', reason: 'shadowed', by: 'pdf' }])
})

t.test('K86: flat, and names that are unsafe', async (t) => {
  const files = { ...skillsAt('a', 'b/c'), 'd/x.txt': '', 'e.txt': '', '.git2/x': '' }
  t.strictSame(paths(await find(files, { layout: 'flat' })), { a: 'a', b: 'b', d: 'd' })
  t.match((await find(skillsAt('skills/a\nb', 'skills/back\\slash'))).leftOut,
    [{ reason: 'unsafe_name' }, { reason: 'unsafe_name' }])
})

t.test('K86: include and exclude are globs of paths', async (t) => {
  const all = skillsAt('skills/ab', 'skills/.curated/z', 'skills/g/cb', 'skills/{x}', 'docs/c')
  const cases: Readonly<Record<string, readonly string[]>> = {
    'skills/*': ['skills/ab', 'skills/{x}'],
    '**/*b': ['skills/ab', 'skills/g/cb'],
    'skills/*/*': ['skills/.curated/z', 'skills/g/cb'],
    './skills/g/**': ['skills/g/cb'],
    'skills/ab/**': ['skills/ab'],
    'skills/ab/': ['skills/ab'],
    'skills/?b': ['skills/ab'],
    'skills/[a-c]*': ['skills/ab'],
    '**/[!a-c]*': ['skills/.curated/z', 'skills/{x}'],
    '{docs,skills/g}/*': ['docs/c', 'skills/g/cb'],
    'skills/\\{x\\}': ['skills/{x}'],
    '!skills/**': ['docs/c'],
    '!(skills)/*': ['docs/c'],
    '#x': []
  }
  for (const [glob, expected] of Object.entries(cases)) {
    t.strictSame(Object.values(paths(await find(all, { layout: 'tree', include: [glob] }))).sort(), expected, glob)
  }
  const rest = await find(all, { layout: 'tree', exclude: ['skills/g/**', '**/.*', 'skills/{\\{x\\},ab}'] })
  t.strictSame(Object.values(paths(rest)), ['docs/c'], 'a folder is excluded with what is in it')
})

t.test('K86: no name keeps the comparison with a glob busy', async (t) => {
  const name = 'a'.repeat(255)
  const globs = [`${'*a'.repeat(20)}*[bc]`, `**/${'*a'.repeat(20)}*/**/[bc]`, '+(a|aa|*a)[bc]']
  const deep = Array.from({ length: 8 }, (_, depth) => Array(depth + 1).fill(name).join('/'))
  const found = await find(skillsAt(...deep), { layout: 'tree', include: globs, exclude: globs })
  t.strictSame([found.skills.length, found.leftOut.length], [0, 8])
})

t.test('K86: marketplaces and plugins name their skills; remote ones are counted and not followed', async (t) => {
  const marketplace = {
    name: 'm',
    metadata: { pluginRoot: './plugins' },
    plugins: [
      { name: 'one', source: './plugins/one' },
      { name: 'two', source: 'two', skills: ['./extra/c', './more'], strict: false },
      { name: 'far', source: { source: 'url', url: 'https://x.example/r.git', sha: 'a' } },
      { name: 'out', source: '../../etc' },
      { name: 'self', source: './self' },
      { name: 'all', source: './', skills: ['./own/g'] }
    ]
  }
  const files = {
    '.claude-plugin/marketplace.json': JSON.stringify(marketplace),
    ...skillsAt('plugins/one/skills/a', 'plugins/one/skills/b', 'plugins/two/extra/c', 'plugins/two/more/d', 'self',
      'skills/f', 'own/g', 'other/deep/h')
  }
  const found = await find(files)
  t.equal(found.layout, 'marketplace')
  t.strictSame(Object.keys(paths(found)).sort(), ['a', 'b', 'c', 'd', 'f', 'g', 'self'])
  t.match(found.leftOut, [{ path: 'far', reason: 'remote_plugin' }, { path: '../../etc', reason: 'bad_manifest' }])
  const own = { '.claude-plugin/plugin.json': '{"skills":"./mine"}', ...skillsAt('mine/a', 'skills/b') }
  const plugin = await find(own, { layout: 'marketplace' })
  t.strictSame(Object.keys(paths(plugin)).sort(), ['a', 'b'])
  t.match((await find({ '.claude-plugin/marketplace.json': '{', ...skillsAt('skills/a') })),
    { skills: [{ name: 'a' }], leftOut: [{ reason: 'bad_manifest' }] })
})

t.test('K86: nothing is left out in silence: folders too deep, and manifests too large', async (t) => {
  const eight = 'a/b/c/d/e/f/g/h'
  t.strictSame((await find(skillsAt(eight, `${eight}/references/inner`))).leftOut, [],
    'what lies in a skill is part of it')
  t.match(await find(skillsAt('a/b/x', 'a/b/c/d/e/f/g/other/i')),
    { skills: [{ name: 'x' }], leftOut: [{ path: '', reason: 'bound_reached' }] })
  const large = await find({
    ...skillsAt('skills/a'),
    '.claude-plugin/marketplace.json': JSON.stringify({ plugins: [], more: ' '.repeat(1_048_576) })
  })
  t.match(large, {
    skills: [{ name: 'a' }], leftOut: [{ path: '.claude-plugin/marketplace.json', reason: 'bad_manifest' }]
  })
})

t.test('K86: no source keeps the search busy: with links to long paths or to large folders, or with a folder that ' +
  'is named again and again', async (t) => {
  const detour = '../skills/'.repeat(400)
  const chain = Array.from({ length: 39 }, (_, index) => [`skills/l${index}`, `->${detour}l${index + 1}`])
  const circles = Array.from({ length: 50_000 }, (_, index) => [`skills/c${index}`, '->.'])
  const found = await find({ ...skillsAt('skills/a'), ...Object.fromEntries([...chain, ...circles]) })
  t.strictSame(paths(found), { a: 'skills/a' })
  const manifest = { plugins: Array(2_000).fill({ source: './', skills: Array(50).fill('./more') }) }
  const named = await find({
    ...skillsAt('skills/a', ...Array.from({ length: 2_000 }, (_, index) => `more/m${index}`)),
    '.claude-plugin/marketplace.json': JSON.stringify(manifest)
  })
  t.equal(named.skills.length, 2_001)
  t.match(named.leftOut, [{ path: /^more/, reason: 'bound_reached' }])
})
