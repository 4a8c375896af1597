import fc from 'fast-check'
import t from 'tap'
import { Catalog, type IndexedSkill } from '../../../src/core/catalog/catalog.ts'
import { compareLoaded, mayHold } from '../../../src/core/catalog/index-entry.ts'
import { type Refusal, RefusedError } from '../../../src/core/disk/refused.ts'
import type { SkillFolder } from '../../../src/core/roots/scan-root.ts'
import type { Signature } from '../../../src/core/shared/skill.ts'

const SIGNATURE: Signature = { dev: 1n, ino: 1n, size: 1n, mtimeNs: 1n, ctimeNs: 1n }

function folder (name: string): SkillFolder {
  return { name, type: 'project', path: `/root/${name}`, realPath: `/root/${name}`, linked: false }
}

function indexed (of: SkillFolder, more: Partial<IndexedSkill> = {}): IndexedSkill {
  const { name } = of
  return {
    name,
    metadata: { name, description: '', type: 'project', skillPath: of.path, path: `${of.path}/SKILL.md` },
    frontmatter: {},
    findings: [],
    valid: true,
    folder: of,
    folderSignature: SIGNATURE,
    mainFiles: ['SKILL.md'],
    mainFile: { name: 'SKILL.md', signature: SIGNATURE },
    ignoreFile: undefined,
    filter: undefined,
    refused: undefined,
    isTrustworthy: true,
    sequence: 1,
    ...more
  }
}

function mapOf (...folders: readonly SkillFolder[]): ReadonlyMap<string, SkillFolder> {
  return new Map(folders.map((each) => [each.name, each]))
}

/** The state after `catalog` with other folders. Any name may differ. */
function place (catalog: Catalog, folders: ReadonlyMap<string, SkillFolder>): Catalog {
  return catalog.withFolders(folders, [...new Set([...catalog.folders.keys(), ...folders.keys()])])
}

t.test('K11: names are sorted by code point', (t) => {
  const catalog = place(new Catalog(), mapOf(...['b', '\u{1F600}', 'a', '\uFFFD', 'B'].map((name) => folder(name))))
  t.strictSame(catalog.names, ['B', 'a', 'b', '\uFFFD', '\u{1F600}'])
  t.end()
})

t.test('K53: a step leaves the state before as it was', (t) => {
  const [a, b] = [folder('a'), folder('b')]
  const first = place(new Catalog(), mapOf(a)).withSkills([indexed(a)], true)
  const second = place(first, mapOf(a, b)).withSkills([indexed(b), indexed(a, { valid: false })], true)
  t.strictSame(first.names, ['a'])
  t.strictSame(first.available.map(({ name }) => name), ['a'])
  t.equal(first.get('b'), undefined)
  t.strictSame(second.available.map(({ name }) => name), ['b'])
  t.end()
})

t.test('K5: what the catalog does not hold is undefined, whatever it is called', (t) => {
  const catalog = place(new Catalog(), mapOf(folder('constructor')))
  for (const name of ['constructor', '__proto__', 'toString', '', '../constructor']) t.equal(catalog.get(name), undefined, name)
  t.end()
})

t.test('the generation goes up with what a caller can see, and only then', (t) => {
  const a = folder('a')
  const first = place(new Catalog(), mapOf(a))
  t.equal(first.generation, 1)
  t.equal(place(first, mapOf(a)), first, 'the same folders')
  t.equal(first.withSkills([indexed(a)], false).generation, 1)
  t.equal(first.withSkills([indexed(a)], true).generation, 2)
  t.equal(place(first, mapOf(folder('a'))).generation, 2, 'another folder')
  t.end()
})

t.test('a step that nobody can see keeps the lists', (t) => {
  const a = folder('a')
  const first = place(new Catalog(), mapOf(a)).withSkills([indexed(a)], true)
  const { available } = first
  t.equal(first.withSkills([indexed(a, { sequence: 2 })], false).available, available)
  t.not(first.withSkills([indexed(a, { sequence: 2 })], true).available, available)
  t.end()
})

t.test('K53: an entry stands until its name is read from the new folder, and goes with its name', (t) => {
  const before = folder('a')
  const after = folder('a')
  const old = indexed(before)
  const moved = place(place(new Catalog(), mapOf(before)).withSkills([old], true), mapOf(after))
  t.equal(moved.get('a'), old)
  t.notOk(moved.isInPlace(old), 'but it says that it is old')
  const read = indexed(after)
  t.ok(moved.withSkills([read], true).isInPlace(read))
  const gone = place(moved, mapOf())
  t.equal(gone.get('a'), undefined)
  t.equal(place(gone, mapOf(before)).get('a'), undefined, 'and does not come back by itself')
  t.end()
})

t.test('K53: any order of steps holds what a plain map would', (t) => {
  const name = fc.integer({ min: 0, max: 300 }).map((number) => `skill-${number}`)
  const step = fc.oneof(
    fc.array(name, { maxLength: 200 }).map((names) => ({ kind: 'read' as const, names })),
    fc.array(name, { maxLength: 300 }).map((names) => ({ kind: 'folders' as const, names }))
  )
  fc.assert(fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
    let catalog = new Catalog()
    let folders = new Map<string, SkillFolder>()
    const skills = new Map<string, IndexedSkill>()
    for (const [index, { kind, names }] of steps.entries()) {
      if (kind === 'folders') {
        folders = new Map(names.map((each) => [each, folders.get(each) ?? folder(each)]))
        for (const each of skills.keys()) if (!folders.has(each)) skills.delete(each)
        catalog = place(catalog, folders)
      } else {
        const read = [...new Set(names)].flatMap((each) => {
          const of = folders.get(each)
          return of === undefined ? [] : [indexed(of, { sequence: index })]
        })
        for (const each of read) skills.set(each.name, each)
        catalog = catalog.withSkills(read, true)
      }
      for (const each of folders.keys()) if (catalog.get(each) !== skills.get(each)) return false
      if (catalog.available.length !== skills.size) return false
    }
    return true
  }), { numRuns: 60 })
  t.end()
})

t.test('K11: what is available after any steps is what the skills read last say, and stays the same list where callers see no difference', (t) => {
  const names = ['a', 'b', 'c', '\uFFFD', '\u{1F600}']
  const step = fc.array(fc.record({ name: fc.constantFrom(...names), valid: fc.boolean() }), { maxLength: 4 })
  fc.assert(fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
    const folders = new Map(names.map((name) => [name, folder(name)]))
    let catalog = place(new Catalog(), folders)
    const last = new Map<string, boolean>()
    for (const read of steps) {
      const skills = read.map(({ name, valid }) => indexed(folder(name), { valid }))
      for (const { name, valid } of read) last.set(name, valid)
      catalog = catalog.withSkills(skills, true)
      const { available } = catalog
      t.strictSame(available.map(({ name }) => name), catalog.names.filter((name) => last.get(name) === true))
      catalog = catalog.withSkills(skills.map((skill) => ({ ...skill, sequence: 2 })), false)
      t.equal(catalog.available, available)
    }
  }))
  t.end()
})

t.test('K53: what was read of another folder, earlier, or from a disk that fails, replaces nothing', (t) => {
  const a = folder('a')
  const catalog = place(new Catalog(), mapOf(a)).withSkills([indexed(a, { sequence: 5 })], true)
  const isTaken = (skill: IndexedSkill): boolean => compareLoaded(catalog, [skill]).accepted.length === 1
  const refused = (refusal: Refusal): Partial<IndexedSkill> => ({ sequence: 6, refused: new RefusedError(refusal) })
  t.ok(isTaken(indexed(a, { sequence: 6 })))
  t.notOk(isTaken(indexed(a, { sequence: 5 })))
  t.notOk(isTaken(indexed(folder('a'), { sequence: 6 })), 'the name means another folder by now')
  t.notOk(isTaken(indexed(a, refused('io_error'))))
  t.notOk(isTaken(indexed(a, refused('changed'))), 'no state of it holds')
  t.ok(isTaken(indexed(a, refused('permission_denied'))))
  t.equal(compareLoaded(place(new Catalog(), mapOf(a)), [indexed(a, refused('io_error'))]).accepted.length, 1, 'where nothing is known it is better than nothing')
  t.end()
})

t.test('K51: an entry holds only where a comparison of folder and main file can say so', (t) => {
  const a = folder('a')
  const catalog = place(new Catalog(), mapOf(a))
  t.ok(mayHold(catalog, indexed(a)))
  t.notOk(mayHold(catalog, indexed(a, { isTrustworthy: false })))
  t.notOk(mayHold(catalog, indexed(a, { refused: new RefusedError('permission_denied') })), 'the reason may be over without a change to folder or file')
  t.notOk(mayHold(catalog, indexed(a, { mainFiles: ['SKILL.MD', 'SKILL.md'], mainFile: { name: 'SKILL.MD', signature: SIGNATURE } })), 'the target of the preferred one may be there now')
  t.notOk(mayHold(catalog, indexed(folder('a'))))
  t.end()
})
