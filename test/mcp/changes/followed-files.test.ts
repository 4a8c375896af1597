import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { FeedEvent, FeedListener } from '../../../src/core/events/change-feed.ts'
import { mainFileError } from '../../../src/core/shared/errors.ts'
import type { Manifest } from '../../../src/core/shared/skill.ts'
import { FollowedFiles } from '../../../src/mcp/changes/followed-files.ts'

function createFollowed () {
  const digests: Record<string, string> = { 'SKILL.md': 'a', 'docs/x.md': 'a' }
  const listeners = new Set<FeedListener>()
  const told: string[] = []
  const errors: unknown[] = []
  let asked = 0
  let failure: Error | undefined
  const files = new FollowedFiles({
    skills: {
      async manifest (name): Promise<Manifest> {
        asked++
        if (failure !== undefined) throw failure
        const list = Object.entries(digests).map(([path, digest]) => ({ path, digest, size_bytes: 1, media_type: '' }))
        return { skill_name: name, revision: JSON.stringify(digests), files: list }
      }
    },
    feed: {
      subscribe (listener) {
        listeners.add(listener)
        return () => { listeners.delete(listener) }
      }
    },
    onChange: (uri) => { told.push(uri) },
    onError: (error) => { errors.push(error) }
  })
  const tell = async (event: FeedEvent): Promise<readonly string[]> => {
    for (const listener of listeners) listener(event)
    await nextTurn()
    return told.splice(0)
  }
  return { files, digests, listeners, told, errors, tell, asked: () => asked, fail: (error?: Error) => { failure = error } }
}

const CHANGED: FeedEvent = { id: '1', type: 'changed', name: 'demo' }

t.test('the feed is listened to while a stream wants to hear of a file, and no longer', async (t) => {
  const { files, digests, listeners, tell, asked } = createFollowed()
  const [one, two] = [new AbortController(), new AbortController()]
  await files.follow([], one.signal)
  await files.follow(['http://demo/x', 'skill://demo', 'skill://'], one.signal)
  t.equal(listeners.size, 0, 'not for what names no file')
  await files.follow(['skill://demo/SKILL.md', 'skill://demo/SKILL.md'], one.signal)
  await files.follow(['skill://demo/SKILL.md'], two.signal)
  t.equal(listeners.size, 1)
  one.abort()
  t.equal(listeners.size, 1)
  digests['SKILL.md'] = 'b'
  t.strictSame(await tell(CHANGED), ['skill://demo/SKILL.md'], 'one stream follows it still')
  const before = asked()
  await tell({ ...CHANGED, name: 'other' })
  t.equal(asked(), before, 'skills that nobody follows are not looked at')
  two.abort()
  t.equal(listeners.size, 0)
  await files.follow(['skill://demo/SKILL.md'], AbortSignal.abort())
  t.equal(listeners.size, 0, 'a client that has gone already')
  await files.follow(['skill://demo/SKILL.md'], new AbortController().signal)
  files.close()
  t.equal(listeners.size, 0, 'nor after closing')
})

t.test('each file is told when it is another one, once', async (t) => {
  const { files, digests, told, tell, fail } = createFollowed()
  await files.follow(['skill://demo/SKILL.md', 'skill://demo/docs/x.md', 'skill://demo/new.md'], new AbortController().signal)
  t.strictSame(told, [], 'nothing has changed since')
  t.strictSame(await tell(CHANGED), [])
  digests['docs/x.md'] = 'b'
  t.strictSame(await tell(CHANGED), ['skill://demo/docs/x.md', 'skill://demo/new.md'], 'what is not listed may be any file of the skill')
  t.strictSame(await tell(CHANGED), [])
  t.strictSame(await tell({ id: '2', type: 'reset' }), [])
  fail(mainFileError.skillNotFound('demo'))
  t.strictSame((await tell({ id: '3', type: 'removed', name: 'demo' })).length, 3)
  fail()
  t.strictSame((await tell({ id: '4', type: 'added', name: 'demo' })).length, 3)
})

t.test('an error that nobody expects is reported, and the next change told', async (t) => {
  const { files, digests, errors, tell, fail } = createFollowed()
  await files.follow(['skill://demo/SKILL.md'], new AbortController().signal)
  fail(new Error('unexpected'))
  t.strictSame(await tell(CHANGED), [])
  t.equal(errors.length, 1)
  fail()
  digests['SKILL.md'] = 'b'
  t.strictSame(await tell(CHANGED), ['skill://demo/SKILL.md'])
})
