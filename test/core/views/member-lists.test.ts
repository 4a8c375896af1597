import fc from 'fast-check'
import t from 'tap'
import { compareCodePoints } from '../../../src/core/shared/text.ts'
import { type ListedMember, MemberLists } from '../../../src/core/views/member-lists.ts'

/** A root that has these names now; `namesNow` gives the same array for the same names, as a manager does. */
class Root {
  readonly asked: string[] = []
  #names: readonly string[] = []

  readonly skills = { namesNow: () => this.#names, availableNow: () => [] }

  set (names: readonly string[]): void {
    const sorted = [...names].sort(compareCodePoints)
    if (sorted.join() !== this.#names.join()) this.#names = sorted
  }

  member (allows: (name: string) => boolean): ListedMember {
    return {
      skills: this.skills,
      allows: (name) => {
        this.asked.push(name)
        return allows(name)
      }
    }
  }
}

const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'ba', 'c', 'ca', 'd', 'é', '\u{1F600}', '\uFFFD'))

t.test('K64: whatever comes and goes, a view has the names, owners and hidden names that it has when merged anew', async () => {
  fc.assert(fc.property(fc.array(fc.tuple(names, names, names), { minLength: 1, maxLength: 8 }), fc.subarray(['a', 'ba', 'c', 'ca', 'é']), (steps, hidden) => {
    const roots = [new Root(), new Root(), new Root()]
    const members = roots.map((root, index) => root.member((name) => index === 1 || !hidden.includes(name)))
    const lists = new MemberLists(members)
    for (const step of steps) {
      for (const [index, root] of roots.entries()) root.set(step[index] ?? [])
      const merged = lists.namesNow()
      const anew = new MemberLists(members).namesNow()
      const plain = ({ names, owners, shadowing }: typeof merged) => [names, [...owners].sort(), [...shadowing].sort()]
      if (JSON.stringify(plain(merged)) !== JSON.stringify(plain(anew))) throw new Error(`${JSON.stringify(plain(merged))} is not ${JSON.stringify(plain(anew))}`)
    }
  }), { numRuns: 500 })
})

t.test('a new skill asks a view for that skill alone, and one that it may not have changes nothing', async (t) => {
  const root = new Root()
  const lists = new MemberLists([root.member((name) => !name.startsWith('hidden'))])
  const all = Array.from({ length: 1_000 }, (_, index) => `skill-${index}`)
  root.set(all)
  const before = lists.namesNow()
  root.asked.length = 0
  root.set([...all, 'hidden-1'])
  t.equal(lists.namesNow(), before)
  root.set([...all, 'hidden-1', 'new'])
  t.equal(lists.namesNow().names.length, 1_001)
  t.strictSame(root.asked, ['hidden-1', 'new'])
})
