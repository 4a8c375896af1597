import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import t from 'tap'
import { SETTINGS } from '../../src/config/settings.ts'
import { KUSTOMIZATIONS, kustomize } from '../helper/kubernetes.ts'
import { hasProgram } from '../helper/proxies.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const VARIABLES = new Set(Object.values(SETTINGS).map(({ variable }) => variable as string))

interface Composed {
  readonly services: Readonly<Record<string, { readonly environment?: object }>>
  readonly 'x-replica'?: { readonly environment: object }
}

/** Variables of the runtime, and of the examples themselves. */
const OTHERS = new Set(['NODE_ENV', 'NODE_OPTIONS'])

t.test('K90: kustomize makes the same kinds of each variant', async (t) => {
  if (!hasProgram('kubectl', 'version', '--client')) {
    t.comment('skipped: kubectl is not on this machine')
    return
  }
  for (const name of KUSTOMIZATIONS) {
    t.strictSame(new Set(kustomize(name).map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)), new Set([
      'v1 Namespace', 'v1 Service', 'apps/v1 Deployment', 'policy/v1 PodDisruptionBudget',
      'autoscaling/v2 HorizontalPodAutoscaler', 'networking.k8s.io/v1 NetworkPolicy'
    ]), name)
  }
})

t.test('K90: every variable that an example sets is a setting', (t) => {
  const settings = (path: string): string[] => {
    const text = readFileSync(`${ROOT}${path}`, 'utf8')
    const { services, 'x-replica': replica } = path.endsWith('.yml') || path.includes('compose')
      ? load(text) as Composed
      : { services: {}, 'x-replica': undefined }
    const composed = [...Object.values(services), ...replica === undefined ? [] : [replica]]
      .flatMap(({ environment = {} }) => Object.keys(environment))
    const units = Array.from(text.matchAll(/^Environment=(.*)$/gm), ([, line = '']) => line.split(' '))
      .flat().map((pair) => pair.split('=', 1)[0] ?? '')
    const pods = Array.from(text.matchAll(/\{ name: ([A-Z_]+), value:/g), ([, name = '']) => name)
    return [...composed, ...units, ...pods]
  }
  const paths = [
    'docker-compose.yml', 'deploy/compose/compose.yaml', 'deploy/compose/team.yaml',
    'deploy/systemd/skillserve.service', 'deploy/systemd/skillserve@.service',
    'deploy/kubernetes/base/deployment.yaml', 'deploy/kubernetes/git-sync/sidecar.yaml'
  ]
  for (const path of paths) {
    const names = settings(path)
    t.ok(names.length > 0, path)
    t.strictSame(names.filter((name) => !VARIABLES.has(name) && !OTHERS.has(name)), [], path)
  }
  t.end()
})

t.test('K90: the page of the folder names every example', (t) => {
  const page = readFileSync(`${ROOT}deploy/README.md`, 'utf8')
  for (const entry of readdirSync(`${ROOT}deploy`, { withFileTypes: true })) {
    if (entry.isDirectory()) t.match(page, `\`${entry.name}/\``)
  }
  t.ok(existsSync(`${ROOT}deploy/compose/nginx.conf`))
  t.end()
})
