import { renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { skillText } from '../helper/skills.ts'

const [both, one, twin] = [newSecret('both', 'groups: [team]'), newSecret('one', 'groups: [staff]'), newSecret('twin', 'groups: [team]')]

const ACCESS = `
tokens:
  - ${both.entry}
  - ${one.entry}
  - ${twin.entry}
rules:
  - { groups: [team], roots: [team, common] }
  - { groups: [staff], roots: [common] }
`

function roots () {
  return {
    team: { deploy: { 'SKILL.md': skillText('deploy', 'of the team') } },
    common: { deploy: { 'SKILL.md': skillText('deploy', 'of all') }, guide: { 'SKILL.md': skillText('guide') } }
  }
}

t.test('K64: the skill of a team hides one of all for that team only, and only those who see both are told', async (t) => {
  const { get } = await buildGuarded(t, { roots: roots(), access: ACCESS })
  t.match(await (await get('/skills/deploy', both.text)).text(), 'of the team')
  t.match(await (await get('/skills/deploy', one.text)).text(), 'of all')
  t.match(await (await get('/catalog/deploy', both.text)).json(), { findings: [{ code: 'shadowed', message: "a skill of the same name in the root 'common' is hidden by this one" }] })
  const other = await get('/catalog/deploy', one.text)
  t.notMatch(await other.text(), /shadowed|team/)
})

t.test('K7 K64: the skill that hides several names the roots that its caller sees', async (t) => {
  const { get } = await buildGuarded(t, { roots: { ...roots(), third: roots().common }, access: ACCESS.replace('[team, common]', '[team, common, third]') })
  t.match(await (await get('/catalog/deploy', both.text)).json(), { findings: [{ code: 'shadowed', message: "skills of the same name in the roots 'common' and 'third' are hidden by this one" }] })
})

t.test('K64: when the skill that hides another one goes or comes, streams of those who see both are told of a change', async (t) => {
  const { url, get, folder } = await buildGuarded(t, { roots: roots(), access: ACCESS, watcher: true })
  const revisionOf = async (token: string) => (await (await get('/skills/deploy/files', token)).json() as { revision: string }).revision
  const [ofTeam, ofAll] = [await revisionOf(both.text), await revisionOf(one.text)]
  const stream = await openEvents(url, { headers: [`Authorization: Bearer ${both.text}`] })
  t.teardown(() => { stream.destroy() })
  // The catalog's own revision: all skills have been read.
  await stream.until('its beginning', () => /^[\da-f]{64}$/.test(stream.lastEventId))
  const [own, away] = [join(folder, 'team', 'deploy'), join(folder, 'deploy')]
  // Skills that are as young as these are reported once in any case.
  const told = (wanted: string) => stream.until(wanted, () => stream.events.filter(({ data }) => data['name'] === 'deploy').at(-1)?.data['revision'] === wanted)
  renameSync(own, away)
  await told(ofAll)
  renameSync(away, own)
  await told(ofTeam)
  t.strictSame(new Set(stream.events.map(({ type }) => type)), new Set(['changed']))
})

t.test('K64: a list has one tag for all callers of a view, and another for others; each gets 304 for its own', async (t) => {
  const { get } = await buildGuarded(t, { roots: roots(), access: ACCESS.replace('[common] }', '[common], skills: [guide] }') })
  const tagOf = async (token: string) => (await get('/skills', token)).headers.get('etag') ?? ''
  const statusOf = async (token: string, tag: string) => (await get('/skills', token, { headers: { 'if-none-match': tag } })).status
  const [tag, other] = [await tagOf(both.text), await tagOf(one.text)]
  t.equal(await tagOf(twin.text), tag)
  t.not(other, tag)
  t.equal(await statusOf(twin.text, tag), 304)
  t.equal(await statusOf(one.text, other), 304)
  t.equal(await statusOf(one.text, tag), 200)
})

t.test('K61: while a group is granted and revoked without pause, each answer is that of one policy', async (t) => {
  const { get, setAccess } = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const revoked = ACCESS.replace('[team, common]', '[common]')
  const stopped = new AbortController()
  const answers = new Set<string>()
  const readers = Array.from({ length: 4 }, async () => {
    while (!stopped.signal.aborted) {
      const response = await get('/skills/deploy', both.text, { headers: { accept: 'text/markdown' } })
      answers.add(`${response.status} ${await response.text()}`)
    }
  })
  for (let change = 0; change < 6; change++) await setAccess(change % 2 === 0 ? revoked : ACCESS)
  stopped.abort()
  await Promise.all(readers)
  t.strictSame([...answers].sort(), [`200 ${skillText('deploy', 'of all')}`, `200 ${skillText('deploy', 'of the team')}`])
})
