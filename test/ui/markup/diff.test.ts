import t from 'tap'
import { renderDiff } from '../../../src/ui/markup/diff.ts'

const CR = '<span class="hidden-character" title="carriage return">U+000D</span>'

t.test('K74: what differs is shown, also where only line ends do', (t) => {
  const rows: ReadonlyArray<readonly [before: string, after: string, note: string | undefined, shown: readonly string[]]> = [
    ['a\r\nb\r\n', 'a\nb\n', 'Only line ends differ.', [`<del>-a${CR}\n</del><del>-b${CR}\n</del><ins>+a\n</ins><ins>+b\n</ins>`]],
    ['a\rb\n', 'a\nb\n', 'Only line ends differ.', [`<del>-a${CR}b\n</del>`]],
    ['a\n', 'a', 'Only line ends differ.', ['<del>-a\n</del>', '<ins>+a<span class="hidden-character" title="the file ends here">no line end</span>\n</ins>']],
    ['a\r\nb\n', 'a\nc\n', undefined, [`<del>-a${CR}\n</del><del>-b\n</del><ins>+a\n</ins><ins>+c\n</ins>`]],
    ['a\nb', 'c\nb', undefined, ['<span> b\n</span>']],
    ['same', 'same', 'The text is the same: the bytes of the file differ in their encoding.', []]
  ]
  for (const [before, after, note, shown] of rows) {
    const markup = renderDiff(before, after)
    t.equal(/<p class="note">(.*?)<\/p>/.exec(markup)?.[1], note, JSON.stringify(before))
    for (const each of shown) t.ok(markup.includes(each), markup)
  }
  t.end()
})
