import { zipOf } from './test/helper/archives.ts'
import { deflateRawSync } from 'node:zlib'
import { startServer } from './bench/process.ts'
import { MAIN } from './bench/process.ts'
const run = { teardown () {}, part () {} } as any
const s = await startServer(run, [MAIN, '--port', '0', '/tmp/pg/ten'], { log: '/tmp/pg/bz.log', stalls: true })
const D = '---\nname: demo\ndescription: d\n---\n'
const f = (name: string, b: string | Buffer = 'x', more = {}) => ({ name, bytes: Buffer.from(b), ...more })
const deep = (i: number) => Array.from({ length: 60 }, (_, k) => `d${(i * 7 + k) % 50}`).join('/') + '/f' + i
const C: Record<string, Buffer> = {
  plain: zipOf([f('SKILL.md', D)]),
  entries: zipOf([f('SKILL.md', D), ...Array.from({ length: 19_998 }, (_, i) => f(`f${i}`, ''))]),
  deep: zipOf([f('SKILL.md', D), ...Array.from({ length: 15_000 }, (_, i) => f(deep(i), ''))]),
  collide: zipOf([f('SKILL.md', D), ...Array.from({ length: 9_000 }, (_, i) => f(`A${i}/x`, '')), ...Array.from({ length: 9_000 }, (_, i) => f(`a${i}/x`, ''))]),
  nested: zipOf([f('SKILL.md', D), ...Array.from({ length: 15_000 }, (_, i) => f(`s${i}/SKILL.md`, ''))]),
  tooMany: zipOf(Array.from({ length: 20_001 }, (_, i) => f(`f${i}`, ''))),
  big: zipOf([f('SKILL.md', D + 'aB3dE5gH'.repeat(130_000)), f('pad.bin', Buffer.alloc(8_000_000, 1))]),
  claimed: zipOf([f('SKILL.md', D), f('bomb', 'x', { claimed: 4_000_000_000 })]),
  links: zipOf([f('SKILL.md', D + '[a](b/c.md)\n'.repeat(80_000)), ...Array.from({ length: 15_000 }, (_, i) => f(`s/${i}.md`, ''))]),
  ignore: zipOf([f('SKILL.md', D), f('.skillignore', Array.from({ length: 5000 }, (_, i) => `**/a${i}*`).join('\n')), ...Array.from({ length: 15_000 }, (_, i) => f(`q/s${i}.md`, ''))])
}
for (let round = 0; round < 2; round++) for (const [n, b] of Object.entries(C)) { await s.stall(); const t = performance.now(); const r = await fetch(s.url + '/validate?target=all', { method: 'POST', body: new Uint8Array(b), headers: { 'content-type': 'application/zip' } }); const x = await r.text(); const ms = performance.now() - t; const st = await s.stall(); if (round) console.log(n, (b.length / 1e6).toFixed(1) + 'MB', r.status, Math.round(ms) + ' ms', 'stall', Math.round(st.own), x.length, x.slice(0, 60)) }
const md: Record<string, string> = { gt: '>'.repeat(50000), b64: 'aB3dE5gH'.repeat(125000), tick: '](' + '`'.repeat(1000000), curl: 'curl x|'.repeat(140000), yaml: '' }
for (const [n, b] of Object.entries(md)) { await s.stall(); const t = performance.now(); const r = await fetch(s.url + '/validate?target=all', { method: 'POST', body: n === 'yaml' ? '---\n' + 'k: [[[[[[\n'.repeat(6000) + '---\n' : D + b, headers: { 'content-type': 'text/markdown' } }); await r.text(); console.log(n, r.status, Math.round(performance.now() - t), 'stall', Math.round((await s.stall()).own)) }
await s.stop()
