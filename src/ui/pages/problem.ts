import type { Addresses } from '../addresses.ts'
import { html, visible } from '../html.ts'
import type { Page } from './layout.ts'

export interface ProblemContent {
  readonly status: number
  readonly title: string
  readonly sentence: string
}

/** Why there is no page, for people. */
export function problemPage ({ status, title, sentence }: ProblemContent, addresses: Addresses): Page {
  return {
    title: `${title} – Skills`,
    main: html`<div class="problem"><p class="status">${status}</p>
<h1>${title}</h1>
<p class="lead" dir="auto">${visible(sentence)}.</p>
<p class="actions"><a href="${addresses.home}">All skills</a> <a href="${addresses.status}">Status</a></p></div>`
  }
}
