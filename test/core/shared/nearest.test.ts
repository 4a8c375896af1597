import t from 'tap'
import { nearest } from '../../../src/core/shared/nearest.ts'

const WORDS = ['serve', 'healthcheck', 'help', 'version', 'validate']

t.test('a mistyped word stands for the one that takes the fewest changes', async (t) => {
  const cases: readonly (readonly [word: string, meant: string | undefined])[] = [
    ['serv', 'serve'], ['serves', 'serve'], ['verison', 'version'], ['vaildate', 'validate'], ['helo', 'help'], ['halp', 'help'],
    ['SERVE', undefined], ['skills', undefined], ['', undefined], ['h', undefined], ['xy', undefined], ['elp', 'help']
  ]
  for (const [word, meant] of cases) t.equal(nearest(word, WORDS), meant, word)
})
