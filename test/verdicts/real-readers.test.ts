import { createRequire } from 'node:module'
import matter from 'gray-matter'
import t from 'tap'
import { D, text } from '../helper/rule-skills.ts'
import { verdictsFor } from '../helper/verdicts.ts'

// The package has no types under this name.
const { load: loadYaml4 } = createRequire(import.meta.url)('js-yaml-4') as {
  readonly load: (source: string) => unknown
}

/** Frontmatter of which readers of YAML make different things. */
const VALUES = [
  '*.tsx', '**/*.ts', '*file', '[*.a]', '{a: *b}', 'Use when: asked', 'ends:', '@here', '`code`', '%d', '!text x',
  '- item', '"open', '"a" b', "'a' b",
  '[a, b]', '{a: b}', '[a] [b]', '5', 'true', 'yes', '2024-01-02', '~', '"\\d"', '|\n  a: b', '>\n  a', '&x a', 'a # b',
  'a\tb'
] as const
const LINES = [...VALUES.map((value) =>
  `note: ${value}`), 'a: &x b\nc: *x', 'a: &x [1]\nc: [*x]', 'note: a\nnote: b', 'metadata:\n  a: *b', 'list:\n  - *b']

function reads (read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

t.test('K79: what is said to load is what readers of that kind read, and what is said not to is not', async (t) => {
  for (const lines of LINES) {
    const file = text('name: demo', D, lines)
    const { targets } = await verdictsFor({ text: file }, ['opencode', 'gemini-cli'])
    const [gemini, opencode] = ['gemini-cli', 'opencode'].map((name) =>
      targets.find(({ target }) => target === name)?.verdict)
    // gray-matter has js-yaml 3. A file that it reads is loaded at the first attempt.
    if (reads(() => matter(file, {}))) t.not(opencode, 'not_loaded', `OpenCode: ${lines}`)
    // js-yaml 4; what it refuses is read line by line, which may change values.
    const source = file.split('---\n')[1] ?? ''
    if (!reads(() => loadYaml4(source))) t.equal(gemini, 'changed', `Gemini CLI: ${lines}`)
  }
})
