import { html } from '../markup/html.ts'
import type { Page } from './layout.ts'

/** The form that takes a token. @param problem why the last one was refused */
export function signInPage (problem?: string): Page {
  return {
    title: 'Sign in – Skills',
    main: html`<h1>Sign in</h1>
<p class="lead">Sign in with the token that you use for the API. This browser keeps it in a cookie that only these pages
read.</p>
${problem !== undefined && html`<p class="refused" role="alert">${problem}.</p>`}
<form class="sign-in" method="post" action="sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>`
  }
}
