import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createWatcher } from '../../src/core/watch/watcher.ts'
import { openEvents } from '../helper/event-stream.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')

function access (rules: string, tokens = [ann, bob]): string {
  return `tokens:\n${tokens.map(({ entry }) => `  - ${entry}\n`).join('')}rules:\n${rules}`
}

const DOCS = '  - { groups: [docs], roots: [docs] }\n'
const OPS = '  - { groups: [ops], roots: [ops] }\n'

async function start (t: Test) {
  const service = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } }, access: access(DOCS + OPS), watcher: createWatcher
  })
  const open = async (token: string, lastId?: string) => {
    const stream = await openEvents(service.url, { headers: [`Authorization: Bearer ${token}`, ...lastId === undefined ? [] : [`Last-Event-ID: ${lastId}`]] })
    t.teardown(() => { stream.destroy() })
    return stream
  }
  return { ...service, open }
}

t.test('K64: a stream tells of what its caller sees, and its ids count nothing else', async (t) => {
  const { open, folder } = await start(t)
  const [ofAnn, ofBob] = [await open(ann.text), await open(bob.text)]
  await ofAnn.until('its beginning', () => ofAnn.lastEventId !== '')
  mkdirSync(join(folder, 'ops', 'new'))
  writeFileSync(join(folder, 'ops', 'new', 'SKILL.md'), skillText('new'))
  await ofBob.until('the new skill', () => ofBob.events.some(({ data }) => data['name'] === 'new'))
  appendFileSync(join(folder, 'docs', 'guide', 'SKILL.md'), '!')
  await ofAnn.until('the edit', () => ofAnn.events.some(({ data }) => data['name'] === 'guide'))
  t.notMatch(JSON.stringify(ofAnn.events), /new|pager/)
})

t.test('K64: a change of policy is told to open streams as a change of skills', async (t) => {
  const { open, setAccess, get } = await start(t)
  const stream = await open(ann.text)
  await setAccess(access(`${DOCS}${OPS}  - { groups: [docs], roots: [ops] }\n`))
  await stream.until('what came into the view', () => stream.events.some(({ type, data }) => type === 'added' && data['name'] === 'pager'))
  t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide', 'pager'] })
  await setAccess(access(OPS + DOCS))
  await stream.until('what left it', () => stream.events.some(({ type, data }) => type === 'removed' && data['name'] === 'pager'))
  t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide'] })
})

t.test('K64: a stream that resumes tells of nothing from under another policy: neither what its caller saw then, nor what others did', async (t) => {
  const { open, setAccess, folder } = await start(t)
  const edit = (path: string) => { appendFileSync(join(folder, path, 'SKILL.md'), '!') }
  await setAccess(access(`${DOCS}${OPS}  - { groups: [docs], roots: [ops] }\n`))
  const stream = await open(ann.text)
  await stream.until('a revision of the catalog', () => /^[\da-f]{64}$/.test(stream.lastEventId))
  const before = stream.lastEventId
  edit('ops/pager')
  await stream.until('the edit', () => stream.events.some(({ type, data }) => type === 'changed' && data['name'] === 'pager'))
  const between = stream.lastEventId
  await setAccess(access(DOCS + OPS))
  await stream.until('what left the view', () => stream.events.some(({ type }) => type === 'removed'))
  edit('docs/guide')
  await stream.until('a later edit', () => stream.events.some(({ data }) => data['name'] === 'guide'))
  for (const id of [before, between]) {
    const resumed = await open(ann.text, id)
    t.match(await resumed.event(0), { type: 'reset' })
    edit('docs/guide')
    t.match(await resumed.event(1), { type: 'changed', data: { name: 'guide' } })
    t.notMatch(JSON.stringify(resumed.events), 'pager')
    resumed.destroy()
  }
})

t.test('K64: who comes right after a change of policy hears nothing of what left the view', async (t) => {
  const { open, setAccess, get, folder } = await start(t)
  await setAccess(access(`${DOCS}${OPS}  - { groups: [docs], roots: [ops] }\n`))
  const stream = await open(ann.text)
  await stream.until('its beginning', () => stream.lastEventId !== '')
  const [, late] = await Promise.all([setAccess(access(DOCS + OPS)), until(async () => {
    const { skills } = await (await get('/skills', ann.text)).json() as { readonly skills: readonly string[] }
    return skills.length === 1
  }).then(() => open(ann.text))])
  await stream.until('what left the view', () => stream.events.some(({ type }) => type === 'removed'))
  appendFileSync(join(folder, 'docs', 'guide', 'SKILL.md'), '!')
  await late.until('an edit', () => late.events.length > 0)
  t.notMatch(JSON.stringify(late.events), 'pager')
})

t.test('K64: streams of callers who get other groups than others go on, and those of the others do not move', async (t) => {
  const cy = newSecret('cy', 'groups: [docs]')
  const service = await start(t)
  const listen = async (token: string) => {
    const stream = await openEvents(service.url, { target: '/mcp', headers: [`Authorization: Bearer ${token}`, 'Accept: text/event-stream'] })
    t.teardown(() => { stream.destroy() })
    return stream
  }
  await service.setAccess(access(DOCS + OPS, [ann, bob, cy]))
  const [ofAnn, ofCy, mcpOfAnn, mcpOfCy] = [await service.open(ann.text), await service.open(cy.text), await listen(ann.text), await listen(cy.text)]
  await service.setAccess(access(DOCS + OPS, [{ ...ann, entry: ann.entry.replace('[docs]', '[docs, ops]') }, bob, cy]))
  await ofAnn.until('that it must read again', () => ofAnn.types.includes('reset'))
  await mcpOfAnn.until('that lists have changed', () => JSON.stringify(mcpOfAnn.events).includes('list_changed'))
  appendFileSync(join(service.folder, 'ops', 'pager', 'SKILL.md'), '!')
  await ofAnn.until('the edit', () => ofAnn.types.includes('changed pager'))
  await mcpOfAnn.until('the edit', () => JSON.stringify(mcpOfAnn.events).includes('skill://pager/SKILL.md'))
  await mcpOfAnn.until('that lists have changed again', () => JSON.stringify(mcpOfAnn.events).split('resources/list_changed').length > 2)
  appendFileSync(join(service.folder, 'docs', 'guide', 'SKILL.md'), '!')
  await ofCy.until('the edit', () => ofCy.types.includes('changed guide'))
  // The edit of what cy sees is told in three messages, whose order the disk decides.
  await mcpOfCy.until('the edit', () => mcpOfCy.events.length >= 3)
  t.strictSame(mcpOfCy.events.map(({ data }) => data['method']).sort(), ['prompts/list_changed', 'resources/list_changed', 'resources/updated'].map((name) => `notifications/${name}`))
  t.notMatch(JSON.stringify([ofCy.events, mcpOfCy.events]), /pager|reset/)
})

t.test('K60: a token that is removed ends its streams, and works no more', async (t) => {
  const { open, setAccess, get } = await start(t)
  const stream = await get('/events', ann.text)
  const other = await open(bob.text)
  const all = stream.text()
  await setAccess(access(DOCS + OPS, [bob]))
  t.match(await all, 'retry:', 'it ends')
  t.notOk(other.connection.ended)
  t.equal((await get('/skills', ann.text)).status, 401)
  t.equal((await get('/skills', bob.text)).status, 200)
})

t.test('K60: a broken file widens nothing: the last good one stays, and the log and /readyz say so', async (t) => {
  const { breakAccess, setAccess, get, folder, logText } = await start(t)
  await breakAccess(`${access(DOCS + OPS)}  - { group: [docs] }\n`)
  t.match(logText(), 'access.yaml:7: rules[2].group is no key here, there are groups, roots, skills')
  t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide'] })
  t.match(await (await get('/readyz', ann.text)).json(), { status: 'ready', detail: /the last good one stays in force/ })
  rmSync(join(folder, 'access.yaml'))
  t.equal((await get('/skills', ann.text)).status, 200)
  await setAccess(access(DOCS, [ann]))
  t.equal((await get('/skills', bob.text)).status, 401)
  t.notMatch(JSON.stringify(await (await get('/readyz', ann.text)).json()), 'last good one')
})

t.test('K64: a cursor of one view is not valid in another', async (t) => {
  const cy = newSecret('cy', 'groups: [docs, ops]')
  const { get } = await buildGuarded(t, {
    roots: { docs: { a: skill('a'), b: skill('b'), c: skill('c') }, ops: { z: skill('z') } }, access: access(DOCS + OPS, [ann, cy])
  })
  const { next_cursor: cursor } = await (await get('/catalog?limit=1', ann.text)).json() as { next_cursor: string }
  t.equal((await get(`/catalog?limit=1&cursor=${cursor}`, ann.text)).status, 200)
  const other = await get(`/catalog?limit=1&cursor=${cursor}`, cy.text)
  t.equal(other.status, 400)
  t.match(await other.json(), { code: 'bad_cursor' })
})
