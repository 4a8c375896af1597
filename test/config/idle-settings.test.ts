import { join } from 'node:path'
import t from 'tap'
import { idleSettings, missingLinkTargets } from '../../src/config/idle-settings.ts'
import { loadConfig } from '../../src/config/load.ts'

t.test('K4: folders that links may lead into and that are not there are told', async (t) => {
  const cwd = t.testdir({ there: {}, file: '' })
  const missing = async (...folders: readonly string[]) => await missingLinkTargets(loadConfig({ positionals: [], flags: new Map([['allow-links', folders]]), env: {}, cwd }))
  t.strictSame(await missing('there', 'nope', 'file'), [join(cwd, 'nope'), join(cwd, 'file')])
  t.strictSame(await missing(), [])
})

t.test('a setting that an access file takes the effect of is told', (t) => {
  const cwd = t.testdir({ 'access.yaml': 'anonymous: []\nrules: []\n' })
  const config = loadConfig({ positionals: [], flags: new Map(), env: { ACCESS_FILE: 'access.yaml', CACHE_SECONDS: '60' }, cwd })
  t.strictSame(idleSettings(config), ['CACHE_SECONDS has no effect with an access file'])
  t.end()
})
