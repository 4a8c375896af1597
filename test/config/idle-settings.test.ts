import { join } from 'node:path'
import t from 'tap'
import { missingLinkTargets } from '../../src/config/idle-settings.ts'
import { loadConfig } from '../../src/config/load.ts'

t.test('K4: folders that links may lead into and that are not there are told', async (t) => {
  const cwd = t.testdir({ there: {}, file: '' })
  const missing = async (...folders: readonly string[]) => await missingLinkTargets(loadConfig({ positionals: [], flags: new Map([['allow-links', folders]]), env: {}, cwd }))
  t.strictSame(await missing('there', 'nope', 'file'), [join(cwd, 'nope'), join(cwd, 'file')])
  t.strictSame(await missing(), [])
})
