/** What a browser sends when somebody opens an address. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

export interface OpenedPage {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Addresses of links, as they stand. */
  readonly links: readonly string[]
}

/** Opens an address as a browser does, without following where it leads. */
export async function openPage (url: string, init: RequestInit & {
  readonly headers?: Readonly<Record<string, string>>
} = {}): Promise<OpenedPage> {
  const response = await fetch(url, { redirect: 'manual', ...init, headers: { accept: BROWSER, ...init.headers } })
  const text = await response.text()
  const links = Array.from(text.matchAll(/ href="([^"]*)"/g),
    ([, href = '']) => href.replaceAll('&#39;', "'").replaceAll('&amp;', '&'))
  return { status: response.status, headers: response.headers, text, links }
}

/** Names of the skills that a list shows. */
export function listedNames (text: string): readonly string[] {
  return Array.from(text.matchAll(/<h2><a href="[^"]*"><bdi>(.*?)<\/bdi>/g),
    ([, name = '']) => name.replaceAll(/<\/?mark>/g, ''))
}
