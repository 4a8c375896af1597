import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'

export const KUSTOMIZATIONS = ['base', 'image-volume', 'git-sync'] as const

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
}

/** What kustomize makes of a folder of `deploy/kubernetes`. */
export function kustomize (name: (typeof KUSTOMIZATIONS)[number]): Manifest[] {
  const folder = fileURLToPath(new URL(`../../deploy/kubernetes/${name}`, import.meta.url))
  return loadAll(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })) as Manifest[]
}
