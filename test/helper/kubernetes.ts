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

const MODELS: Readonly<Record<string, () => Promise<object>>> = {
  v1: () => import('kubernetes-models/v1'),
  'apps/v1': () => import('kubernetes-models/apps/v1'),
  'autoscaling/v2': () => import('kubernetes-models/autoscaling/v2'),
  'networking.k8s.io/v1': () => import('kubernetes-models/networking.k8s.io/v1'),
  'policy/v1': () => import('kubernetes-models/policy/v1')
}

export function kustomize (name: (typeof KUSTOMIZATIONS)[number]): Manifest[] {
  const folder = fileURLToPath(new URL(`../../deploy/kubernetes/${name}`, import.meta.url))
  return loadAll(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })) as Manifest[]
}

/** What is wrong with the manifests of a kustomization. */
export async function invalidManifests (name: (typeof KUSTOMIZATIONS)[number]): Promise<string[]> {
  const problems: string[] = []
  for (const manifest of kustomize(name)) {
    const { apiVersion, kind } = manifest
    const Model = (await MODELS[apiVersion]?.() as Models | undefined)?.[kind]
    if (Model === undefined) problems.push(`${name}: no schema for ${apiVersion} ${kind}`)
    else {
      try {
        new Model(manifest).validate()
      } catch (error) {
        problems.push(`${name}: ${kind}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  return problems
}
