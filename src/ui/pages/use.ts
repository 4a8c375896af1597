import { html, type Html } from '../markup/html.ts'
import type { Snippet } from '../snippets.ts'

/**
 * Snippets as tabs, which are radio buttons: they need no script. They hold the address that the request was sent to.
 * The script puts in the one of the browser's address bar, which a proxy may have changed.
 * @param missing why a client does not get the skill, by the API that it uses
 */
export function snippetList (
  list: readonly Snippet[], base: string, missing: Readonly<Partial<Record<Snippet['through'], string>>> = {}
): Html {
  return html`<fieldset class="snippets" data-base="${base}"><legend class="unseen">Client</legend>${
    list.map(({ id, client, where, text, through }, index) => html`
<input type="radio" name="use" id="use-${id}"${index === 0 && html` checked`}><label for="use-${id}">${client}</label>
<div class="snippet">${missing[through] === undefined
  ? html`<p>${where}</p><pre tabindex="0"><code>${text}</code></pre>
<button type="button" class="copy" hidden>Copy</button>`
  : html`<p class="nothing">${missing[through]}</p>`}</div>`)}
</fieldset>`
}
