import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { encodePath } from '../../core/shared/paths.ts'
import { type Content, html, type Html } from '../markup/html.ts'

export type Addresses = Readonly<ReturnType<typeof addressesFrom>>

/**
 * Returns addresses relative to the page that links to them, so that they work below any path prefix, a proxy's too.
 * @param url request target as received
 * @param prefix path prefix of the service
 */
export function addressesFrom (url: string, prefix: string) {
  const [path = ''] = url.split(/[?#]/, 1)
  const depth = path.slice(prefix.length).split('/').length - 2
  const home = depth > 0 ? '../'.repeat(depth) : './'
  return {
    /** Address of the list: `./`, or as many `../` as the page is deep. */
    home,
    status: `${home}ui/status`,
    skill: (name: string) => `${home}ui/skills/${encodeURIComponent(name)}`,
    /** Address of the page of a file. */
    file: (name: string, path: string) => `${home}ui/skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    /** Address of the bytes of a file. */
    bytes: (name: string, path: string) => `${home}skills/${encodeURIComponent(name)}/files/${encodePath(path)}`,
    /** Any other address of the service, such as `openapi.json`, below its prefix. */
    at: (path: string) => home + path
  }
}

export const ASSETS_FOLDER = fileURLToPath(new URL('../public/', import.meta.url))

const ASSET_NAMES = ['catalog.css', 'catalog.js', 'icon.svg'] as const

export function readAssets () {
  const all = createHash('sha256')
  for (const name of ASSET_NAMES) all.update(readFileSync(ASSETS_FOLDER + name))
  const script = createHash('sha256').update(readFileSync(`${ASSETS_FOLDER}catalog.js`))
  return {
    /** Path of the folder with the assets, below the prefix of the service. It changes with their content. */
    path: `ui/assets/${all.digest('hex').slice(0, 16)}/`,
    /** Digest of the script, as in `integrity` and in a Content-Security-Policy: `sha256-…`. */
    scriptIntegrity: `sha256-${script.digest('base64')}`
  }
}

/** Parts of every page besides its own content. */
export interface Frame {
  readonly addresses: Addresses
  readonly assets: Readonly<ReturnType<typeof readAssets>>
  readonly version: string
  /** Whether a page is loaded again if its content has changed. */
  readonly isPreview: boolean
  /** Whether the caller has signed in, or could; undefined if there is no sign-in. */
  readonly session: 'in' | 'out' | undefined
}

export interface Page {
  readonly title: string
  /** Current entry of the navigation. */
  readonly current?: 'skills' | 'status'
  readonly main: Content
  /** Address of the page of later changes. */
  readonly changes?: string
  /** The page depends on this process, not on content alone: caches ask for it each time. */
  readonly showsProcessState?: boolean
  /** Whether the caller may not open other pages, so that there is no navigation. */
  readonly hasNoNavigation?: boolean
}

/** Placeholder for the digest of the page, which depends on everything else in it. */
export const STATE_PLACEHOLDER = '{state}'

export function renderPage (
  { title, current, main, changes, hasNoNavigation }: Page, { addresses, assets, version, isPreview, session }: Frame
): Html {
  const asset = (file: typeof ASSET_NAMES[number]) => addresses.at(assets.path + file)
  return html`<!doctype html>
<html lang="en" data-state="${STATE_PLACEHOLDER}"${isPreview && html` data-preview`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${asset('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${asset('catalog.css')}">
<script src="${asset('catalog.js')}" integrity="${assets.scriptIntegrity}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
${hasNoNavigation === true ? html`<span class="brand">skillserve</span>` : navigation(current, addresses, session)}
</header>
<p class="outdated" role="status" data-home="${addresses.home}"${
  changes !== undefined && html` data-changes="${changes}"`}></p>
<main id="main" tabindex="-1">
${main}
</main>
<footer class="bottom"><p>skillserve ${version}${hasNoNavigation !== true && html`
<a href="${addresses.at('llms.txt')}">llms.txt</a> <a href="${addresses.at('openapi.yaml')}">OpenAPI</a>`}</p></footer>
</body>
</html>
`
}

function navigation (current: Page['current'], addresses: Addresses, session: Frame['session']): Html {
  return html`<a class="brand" href="${addresses.home}">skillserve</a>
<nav aria-label="Service"><ul>
<li><a href="${addresses.home}"${current === 'skills' && html` aria-current="page"`}>Skills</a></li>
<li><a href="${addresses.status}"${current === 'status' && html` aria-current="page"`}>Status</a></li>
<li><a href="${addresses.at('docs')}">API</a></li>${session === 'out' && html`
<li><a href="${addresses.at('ui/sign-in')}">Sign in</a></li>`}${session === 'in' && html`
<li><form method="post" action="${addresses.at('ui/sign-out')}"><button class="plain">Sign out</button></form></li>`}
</ul></nav>`
}
