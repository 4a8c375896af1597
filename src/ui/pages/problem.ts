import type { Problem } from '../../schemas/problem.ts'
import type { Addresses } from '../addresses.ts'
import { html, type Html, visible } from '../markup/html.ts'
import { listAddress } from '../question.ts'
import type { Page } from './layout.ts'

interface ProblemContent {
  readonly status: number
  readonly code: Problem['code']
  readonly title: string
  readonly sentence: string
  /** Name of the skill in the address. */
  readonly name: string
}

/** Refusals that say the same on every page. */
const OF_ALL_PAGES: ReadonlySet<Problem['code']> = new Set(['insufficient_scope', 'host_not_allowed'])

/** Why there is no page, for people, and where to go from here. */
export function problemPage ({ status, code, title, sentence, name }: ProblemContent, addresses: Addresses): Page {
  const isOnly = OF_ALL_PAGES.has(code)
  return {
    title: `${title} – Skills`,
    isOnly,
    main: html`<div class="problem"><p class="status">${status}</p>
<h1>${title}</h1>
<p class="lead" dir="auto">${visible(sentence)}.</p>
${code === 'unauthenticated' && signedOut(addresses.at('ui/sign-in'))}
${!isOnly && html`<p class="actions"><a href="${addresses.home}">All skills</a>${code === 'skill_not_found' && html`
<a href="${listAddress(addresses, { query: name })}">Search for “${visible(name)}”</a>`}${
  code === 'file_not_found' && html`
<a href="${addresses.file(name, '')}">All files of the skill</a>`}${
  status !== 401 && html` <a href="${addresses.status}">Status</a>`}</p>`}</div>`
  }
}

/** @param signIn address of the form for a token */
const signedOut = (signIn: string): Html => html`<div class="nothing"><ul>
<li>In a browser: <a href="${signIn}">sign in</a> with your token, or through the proxy of your organization.</li>
<li>In a program or an agent: with <code>Authorization: Bearer …</code> and the token that you were given.</li></ul>
<p>Ask the operator of this service for access.</p></div>`
