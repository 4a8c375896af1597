import t from 'tap'
import { parsePage } from '../../src/sources/s3/listing.ts'
import { startTurnWatch } from '../helper/timing.ts'

/** Longest turn of the event loop that a page may take, in milliseconds. */
const MAX_TURN_MS = 300

function entryOf (key: string, more = ''): string {
  return `<Contents><Key>${key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag><Size>12</Size>${more}</Contents>`
}

function pageOf (entries: readonly string[], between = ''): string {
  return `<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>${between}${entries.join(between)}<IsTruncated>false</IsTruncated></ListBucketResult>\n`
}

t.test('a page of 1,000 of the longest keys is parsed, in lines of its own or in one', async (t) => {
  const keys = Array.from({ length: 1_000 }, (_, index) => 'é'.repeat(500) + String(index).padStart(4, '0'))
  for (const between of ['', '\n    ']) {
    const { objects, next } = await parsePage(pageOf(keys.map((key) => entryOf(encodeURIComponent(key))), between))
    t.strictSame(objects.map(({ key }) => key), keys)
    t.strictSame(objects[0], { key: keys[0], etag: '"1"', size: 12 })
    t.equal(next, undefined)
  }
})

t.test('an empty page has no objects', async (t) => {
  t.strictSame(await parsePage(pageOf([])), { objects: [], next: undefined })
})

t.test('K85: a page that was made for the parser holds nobody up', async (t) => {
  const tags = Array.from({ length: 1_500 }, (_, index) => `<a${index.toString(36)}/>`).join('')
  const page = pageOf(Array.from({ length: 100 }, (_, index) => entryOf(`k${index}`, tags)))
  const longestTurn = startTurnWatch()
  const { objects } = await parsePage(page)
  const took = longestTurn()
  t.equal(objects.length, 100)
  t.ok(took < MAX_TURN_MS, `${took.toFixed(0)} ms for ${page.length} bytes`)
})

t.test('K85: parts of a page that the parser would take long for are refused', async (t) => {
  const long = 'a'.repeat(20_000)
  for (const page of [pageOf([entryOf(long)]), pageOf([], `<Prefix>${long}</Prefix>`), pageOf([entryOf('a'), entryOf('b')], `<!--${long}-->`)]) {
    await t.rejects(parsePage(page), { code: 'bad_answer', message: 'a part of the listing has more than 16384 characters' })
  }
})

t.test('K85: no entry is passed over', async (t) => {
  for (const entry of ['<Contents/>', '<Contents></Contents>', `<Contents >${entryOf('a')}`, entryOf('b').replace('<Contents>', '<Contents x="">'), entryOf('c').replace('</Contents>', '')]) {
    await t.rejects(parsePage(pageOf([entryOf('a'), entry])), { code: 'bad_answer' }, entry)
  }
})

t.test('K85: a tag that no header can hold is refused, and is no unexpected error later', async (t) => {
  for (const tag of ['€', 'a\nb', '', 'a'.repeat(1_025)]) {
    await t.rejects(parsePage(pageOf([entryOf('a').replace('&quot;1&quot;', tag)])), { code: 'bad_answer', message: 'the service lists an object without a key, tag or size that can be used' }, tag.slice(0, 3))
  }
})
