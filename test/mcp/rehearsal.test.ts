import t from 'tap'
import { ERAS, rehearse } from '../../src/mcp/rehearsal.ts'

for (const era of ERAS) {
  t.test(`a rehearsal of the ${era} revision is answered as a first message is`, async (t) => {
    const answer = await rehearse(era)
    t.equal(answer.status, 200)
    t.match(await answer.text(), era === 'legacy' ? /"protocolVersion":"2025-11-25"/ : /"supportedVersions":\["2026-07-28"\]/)
  })
}
