import fc from 'fast-check'
import t from 'tap'
import { isHidden, isHiddenFile, isHiddenPath, isVersionControl } from '../../../src/core/disk/hidden.ts'

t.test('K8: folders that are hidden at any depth', (t) => {
  for (const hidden of [['.git'], ['.hg', 'x'], ['a', '.svn', 'b'], ['node_modules'], ['a', '__pycache__', 'b.pyc']]) t.ok(isHiddenPath(hidden), hidden.join('/'))
  for (const shown of [['git'], ['.github', 'x'], ['.gitignore'], ['.env'], ['Node_modules'], ['modules']]) t.notOk(isHiddenPath(shown), shown.join('/'))
  t.notOk(isVersionControl(['node_modules']))
  t.end()
})

t.test('K8: files that are hidden by their own name', (t) => {
  const hidden = [
    '.env', '.env.local', '.env.production', '.env.example.local', '.env.', '.DS_Store', 'Thumbs.db', 'thumbs.db', 'desktop.ini', 'Desktop.ini', 'SKILL.md~', '~', '.SKILL.md.swp',
    '.a.swo', '.a.swx', '.sw.swp', '4913', '.#SKILL.md', '.#', '#SKILL.md#', '##', 'new\nline~', '.\u{1F600}.swp'
  ]
  const shown = [
    '.env.example', '.env.sample', '.env.template', '.envrc', 'env', '.ENV', 'x.env', '.ds_store', 'Thumbs.db.txt', '~a', 'a.swp', '.swp', '.a.swap', '.a.sw', '49131', '04913', '.a#', '#a', 'a#', '#',
    '.gitignore', '.skillignore', 'SKILL.md'
  ]
  for (const name of hidden) t.ok(isHiddenFile(name), name)
  for (const name of shown) t.notOk(isHiddenFile(name), name)
  for (const name of hidden) t.notOk(isHidden(name, true), `${name} as a folder`)
  t.end()
})

t.test('K8: a path is hidden by a folder on the way, by its own name, or by a filter', (t) => {
  const name = fc.constantFrom('a', '.git', 'node_modules', '.env', 'b~', 'SKILL.md')
  fc.assert(fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), fc.boolean(), fc.boolean(), (segments, isFolder, isFiltered) => {
    const byFolder = segments.some((segment) => segment === '.git' || segment === 'node_modules')
    const byName = !isFolder && ['.env', 'b~'].includes(segments.at(-1) ?? '')
    return isHidden(segments.join('/'), isFolder, { id: '', hides: () => isFiltered }) === (byFolder || byName || isFiltered)
  }))
  t.end()
})
