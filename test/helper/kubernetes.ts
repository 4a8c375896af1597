/** What kustomize makes of `deploy/kubernetes`, held against the schemas of Kubernetes. */

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'

export const KUSTOMIZATIONS = ['base', 'image-volume', 'git-sync'] as const

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
}

type Models = Readonly<Record<string, new (data: Manifest) => { validate (): void }>>

export function kustomize (name: (typeof KUSTOMIZATIONS)[number]): Manifest[] {
  const folder = fileURLToPath(new URL(`../../deploy/kubernetes/${name}`, import.meta.url))
  return loadAll(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })) as Manifest[]
}

/** What is wrong with manifests. */
export async function invalidManifests (manifests: readonly Manifest[]): Promise<string[]> {
  const problems: string[] = []
  for (const manifest of manifests) {
    const { apiVersion, kind } = manifest
    try {
      // One kind, and not all of its version: that takes ten times as long to load.
      const models = await import(`kubernetes-models/${apiVersion}/${kind}`) as Models
      const Model = models[kind]
      if (Model === undefined) throw new Error('no schema')
      new Model(manifest).validate()
    } catch (error) {
      problems.push(`${apiVersion} ${kind}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return problems
}
