import { html, type Html } from '../html.ts'
import type { Snippet } from '../snippets.ts'

/**
 * Snippets one below the other, the first one open. They hold the address that the request was sent to; the script puts
 * in the one of the browser's address bar, which a proxy may have changed.
 * @param missing why a client does not get the skill, by the door that it comes through
 */
export function snippetList (list: readonly Snippet[], base: string, missing: Readonly<Partial<Record<Snippet['through'], string>>> = {}): Html {
  return html`<div class="snippets" data-base="${base}">${list.map(({ id, client, where, text, through }, index) => html`
<details name="use" id="use-${id}"${index === 0 && html` open`}><summary>${client}</summary>
${missing[through] === undefined
  ? html`<p>${where}</p><pre tabindex="0"><code>${text}</code></pre><button type="button" class="copy" hidden>Copy</button>`
  : html`<p class="nothing">${missing[through]}</p>`}</details>`)}
</div>`
}
