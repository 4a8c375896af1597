import fc from 'fast-check'
import t from 'tap'
import { attachment } from '../../../src/http/send/content-disposition.ts'
import { codePoint } from '../../helper/code-point.ts'

t.test('RFC 6266: a name for every client', (t) => {
  const table: Readonly<Record<string, string>> = {
    'calculator.zip': 'attachment; filename="calculator.zip"; filename*=UTF-8\'\'calculator.zip',
    'crème 出.zip': "attachment; filename=\"cr_me _.zip\"; filename*=UTF-8''cr%C3%A8me%20%E5%87%BA.zip",
    '"quoted\\%41".zip': "attachment; filename=\"_quoted__41_.zip\"; filename*=UTF-8''%22quoted%5C%2541%22.zip",
    "it's (a) *.zip": "attachment; filename=\"it's (a) *.zip\"; filename*=UTF-8''it%27s%20%28a%29%20%2A.zip",
    '\u{1F600}.zip': "attachment; filename=\"_.zip\"; filename*=UTF-8''%F0%9F%98%80.zip"
  }
  for (const [name, header] of Object.entries(table)) t.equal(attachment(name), header)
  t.end()
})

t.test('RFC 8187: whatever the name, the header is ASCII, well-formed and says it', (t) => {
  fc.assert(fc.property(fc.string({ unit: codePoint }).filter((text) => text.isWellFormed()), (name) => {
    const match = /^attachment; filename="([^"\\%]*)"; filename\*=UTF-8''([\w!#$&+.^`|~%-]*)$/.exec(attachment(name))
    return match !== null && /^[ -~]*$/.test(match[1] ?? '') && decodeURIComponent(match[2] ?? '') === name
  }))
  t.end()
})
