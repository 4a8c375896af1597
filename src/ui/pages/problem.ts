import type { Problem } from '../../schemas/problem.ts'
import { html, type Html, visible } from '../markup/html.ts'
import { listAddress } from '../question.ts'
import type { Addresses, Page } from './layout.ts'

/** Sentences that replace those with a path of the server, and those for programs. */
const FOR_PEOPLE: Partial<Record<Problem['code'], { readonly title?: string, readonly sentence: string }>> = {
  skills_folder_not_found: {
    sentence: 'The folder of skills is missing. The service picks it up as soon as it appears; its log names the folder'
  },
  route_not_found: { title: 'Page not found', sentence: 'No page has this address' },
  unauthenticated: { sentence: 'These skills are only for callers with a token' }
}

/** Codes of refusals that are the same on every page. */
const OF_ALL_PAGES: ReadonlySet<Problem['code']> = new Set(['insufficient_scope', 'host_not_allowed'])

/**
 * Why there is no page, for people, and where to go from here.
 * @param name of the skill in the address
 */
export function problemPage (problem: Problem, name: string, addresses: Addresses): Page {
  const { status, code, error, detail } = problem
  // The hints of other problems name addresses of the API.
  const { title = problem.title, sentence } = FOR_PEOPLE[code] ?? { sentence: status === 403 ? detail : error }
  const isOnly = OF_ALL_PAGES.has(code)
  return {
    title: `${title} – Skills`,
    hasNoNavigation: isOnly,
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
