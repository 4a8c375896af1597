import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EventEmitter } from 'node:events'
import type { Manifest } from '../../src/core/shared/skill.ts'
import type { Lock } from '../../src/trust/lock-file.ts'
import { OriginPolicy } from '../../src/trust/origin-policy.ts'
import type { DiscoveryIndex } from '../../src/well-known/discovery.ts'
import { buildService, type Files, type Service } from '../helper/build.ts'
import { makeKeyPair, sign, trustOf } from '../helper/signing.ts'
import { passTick, skill } from '../helper/skills.ts'

const SHAPES: Readonly<Record<string, Files[string]>> = { 'an archive': skill('demo', { 'a.txt': 'one' }), 'a document': skill('demo') }

async function artifactOf ({ fetch }: Service): Promise<string> {
  const { skills: [entry] } = (await fetch('/.well-known/agent-skills/index.json')).json() as DiscoveryIndex
  return `/.well-known/agent-skills/${entry?.url}`
}

async function revisionOf ({ fetch }: Service): Promise<string> {
  return ((await fetch('/skills/demo/files')).json() as Manifest).revision
}

function edit ({ root }: Service, text: string): void {
  passTick(root)
  fs.appendFileSync(join(root, 'demo/SKILL.md'), text)
}

/** A service whose lock allows what a test pins. */
async function buildLocked (t: Test, files: Files) {
  const lock = Object.assign(new EventEmitter(), { value: new Map() as Lock })
  const service = await buildService(t, { files, options: { policy: new OriginPolicy({ lock }) } })
  return {
    service,
    pin (...revisions: readonly string[]) {
      lock.value = new Map([['demo', new Set(revisions)]])
      lock.emit('changed')
    }
  }
}

for (const [shape, demo] of Object.entries(SHAPES)) {
  t.test(`K59: ${shape} of an index stays readable while the skill is quarantined, and after it is signed again`, async (t) => {
    const key = makeKeyPair()
    const { policy } = trustOf([{ key: key.publicKey }], { roots: new Map([['skills', 'require']]) })
    const service = await buildService(t, { files: { demo }, options: { policy } })
    await sign(join(service.root, 'demo'), key)
    const [revision, artifact] = [await revisionOf(service), await artifactOf(service)]
    const { bytes } = await service.fetch(artifact)
    for (const text of ['second\n', 'third\n']) {
      edit(service, text)
      t.equal((await service.fetch('/skills/demo')).status, 404)
      t.equal((await service.fetch(`/skills/demo?revision=${revision}`)).status, 200)
      const kept = await service.fetch(artifact)
      t.match(kept, { status: 200 }, kept.text.slice(0, 200))
      t.ok(kept.bytes.equals(bytes))
    }
    await sign(join(service.root, 'demo'), key)
    t.equal((await service.fetch('/skills/demo')).status, 200)
    t.equal((await service.fetch(artifact)).status, 200)
    t.match(await service.fetch(artifact.replace(/[\da-f]{64}/, '0'.repeat(64))), { status: 404, text: /artifact_not_found/ })
  })

  t.test(`K59: ${shape} of an index is gone once the lock does not allow its revision any more`, async (t) => {
    const twin = await buildService(t, { files: { demo } })
    const first = await revisionOf(twin)
    edit(twin, 'second\n')
    const second = await revisionOf(twin)
    const { service, pin } = await buildLocked(t, { demo })
    pin(first)
    const artifact = await artifactOf(service)
    t.equal((await service.fetch(artifact)).status, 200)
    edit(service, 'second\n')
    t.equal((await service.fetch(artifact)).status, 200, 'quarantined')
    pin(second, first)
    t.equal((await service.fetch('/skills/demo')).status, 200)
    t.equal((await service.fetch(artifact)).status, 200)
    pin(second)
    t.match(await service.fetch(artifact), { status: 404, text: /artifact_not_found/ })
    pin()
    t.match(await service.fetch(artifact), { status: 404, text: /artifact_not_found/ })
  })
}
