import t from 'tap'
import { hasProgram, KUSTOMIZATIONS, kustomize, type Manifest } from '../../helper/proxies.ts'

type Models = Readonly<Record<string, new (data: Manifest) => { validate (): void }>>

const skip = !hasProgram('kubectl', 'version', '--client') && 'kubectl is not on this machine'

t.test('K90: what kustomize makes of each variant fits the schemas of Kubernetes', { skip }, async (t) => {
  for (const name of KUSTOMIZATIONS) {
    for (const manifest of kustomize(name)) {
      const { apiVersion, kind } = manifest
      // One kind, and not all of its version: that takes ten times as long to load.
      const { [kind]: Model } = await import(`kubernetes-models/${apiVersion}/${kind}`) as Models
      if (Model === undefined) throw new Error(`no schema of ${apiVersion} ${kind}`)
      t.doesNotThrow(() => { new Model(manifest).validate() }, `${name}: ${kind}`)
    }
  }
})
