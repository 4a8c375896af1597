// Pages work without this script. It searches while the user types, copies, selects lines, and reports outdated pages.
// It never writes HTML: XMLHttpRequest parses the answers, and their nodes are adopted.
'use strict'
{
  const { documentElement: root } = document
  const notice = document.querySelector('.outdated')

  /** Address of the service without a slash at the end, by the browser's address bar. */
  const base = new URL(notice.dataset.home, location.href).href.replace(/[?#].*$/, '').replace(/\/$/, '')

  /** Addresses that need no quotes in a shell. Only these are put in: the service has quoted its own already. */
  const NEEDS_NO_QUOTES = /^[\w@%+=:,./-]+$/

  function prepareSnippets () {
    for (const list of document.querySelectorAll('.snippets')) {
      for (const code of NEEDS_NO_QUOTES.test(base) ? list.querySelectorAll('code') : []) {
        code.textContent = code.textContent.replaceAll(list.dataset.base, base)
      }
      for (const button of list.querySelectorAll('.copy')) {
        button.hidden = false
        button.addEventListener('click', () => { copy(button) })
        button.addEventListener('blur', () => { button.textContent = 'Copy' })
      }
    }
  }

  async function copy (button) {
    const code = button.parentElement.querySelector('code')
    try {
      await navigator.clipboard.writeText(code.textContent)
      button.textContent = 'Copied'
    } catch {
      // Browsers have no clipboard for pages over plain HTTP from another host.
      getSelection().selectAllChildren(code)
      button.textContent = 'Selected: press Ctrl C'
    }
  }

  // Search while the user types.
  const QUIET_MS = 30
  const field = document.getElementById('q')
  let request
  let timer

  function search () {
    const parameters = new URLSearchParams(new FormData(field.form))
    for (const [name, value] of [...parameters]) if (value.trim() === '') parameters.delete(name)
    const address = `${base}/${parameters.size === 0 ? '' : `?${parameters}`}`
    // An older answer must not replace a newer one.
    request?.abort()
    request = new XMLHttpRequest()
    request.open('GET', address)
    request.setRequestHeader('accept', 'text/html')
    request.responseType = 'document'
    request.addEventListener('load', () => {
      const results = request.response?.getElementById('results')
      if (!results) {
        sayFailed()
        return
      }
      document.getElementById('results').replaceWith(document.adoptNode(results))
      // The element stays, so that screen readers announce its new text.
      document.getElementById('count').textContent = request.response.getElementById('count').textContent
      root.dataset.state = request.response.documentElement.dataset.state
      tell('')
      document.title = request.response.title
      history.replaceState(undefined, '', address)
    })
    request.addEventListener('error', sayFailed)
    request.send()
  }

  // Reports that a search was refused or got no answer; the list stays.
  function sayFailed () {
    const sentence = 'The search failed. The list below is that of the previous search.'
    document.getElementById('count').textContent = sentence
  }

  function moveThrough (event) {
    const links = [...document.querySelectorAll('.skills h2 a')]
    const at = links.indexOf(document.activeElement)
    if (document.activeElement !== field && at === -1) return
    const next = at + (event.key === 'ArrowDown' ? 1 : -1)
    const target = next < 0 ? field : links[next]
    if (!target) return
    event.preventDefault()
    target.focus()
  }

  function prepareSearch () {
    field.addEventListener('input', () => {
      clearTimeout(timer)
      timer = setTimeout(search, QUIET_MS)
    })
    field.form.addEventListener('change', ({ target }) => { if (target !== field) search() })
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && event.target === field && field.value !== '') {
        event.preventDefault()
        field.value = ''
        search()
      } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') moveThrough(event)
    })
  }

  function goToSearch () {
    if (!field) {
      location.href = `${base}/#q`
      return
    }
    field.focus()
    field.select()
  }

  // Shortcuts that work on every page.
  function prepareShortcuts () {
    document.addEventListener('keydown', (event) => {
      const writes = event.target instanceof HTMLInputElement
      const isSlash = event.key === '/' && !writes && !event.ctrlKey && !event.metaKey && !event.altKey
      if (!isSlash && !(event.key === 'k' && (event.ctrlKey || event.metaKey))) return
      event.preventDefault()
      goToSearch()
    })
    if (field && location.hash === '#q') goToSearch()
  }

  // Selects lines: `#L12-L20`, which a click on a number with Shift creates.
  function chooseLines () {
    const [, first, last] = /^#L(\d+)-L(\d+)$/.exec(location.hash) ?? []
    // Only existing lines are visited, since an address may contain any number.
    for (const [index, line] of document.querySelectorAll('.line').entries()) {
      line.classList.toggle('chosen', index + 1 >= first && index + 1 <= last)
    }
    document.getElementById(`L${first}`)?.scrollIntoView({ block: 'center' })
  }

  function prepareLines (source) {
    source.addEventListener('click', (event) => {
      const [, first] = /^#L(\d+)/.exec(location.hash) ?? []
      const [, number] = /^L(\d+)$/.exec(event.target.id) ?? []
      if (!event.shiftKey || first === undefined || number === undefined) return
      event.preventDefault()
      const [from, to] = [Number(first), Number(number)].sort((a, b) => a - b)
      location.hash = `#L${from}-L${to}`
    })
    addEventListener('hashchange', chooseLines)
    chooseLines()
  }

  // A visible page asks whether it is still current. It is not changed while somebody reads it.
  const ASK_MS = 10_000

  let shown = ''

  async function ask () {
    if (document.hidden) return
    const { state } = root.dataset
    try {
      const headers = { accept: 'text/html', 'if-none-match': `"${state}"` }
      const { status } = await fetch(location.href, { method: 'HEAD', cache: 'no-store', headers })
      // A search has replaced the content of the page in the meantime.
      if (state !== root.dataset.state) return
      // Other answers say nothing about the page: the caller may have to sign in again, or to wait.
      if (status === 304) tell('')
      else if (status === 200) tell('What this page shows has changed. ', notice.dataset.changes)
      else if (status === 404 && !document.querySelector('.problem')) tell('What this page shows is gone. ')
    } catch {
      // The service does not answer: the next time it may.
    }
  }

  // Shows a sentence once, as screen readers announce each write. An empty one removes the notice.
  function tell (sentence, changes) {
    if (sentence === shown) return
    // The browser keeps the scroll position.
    if (sentence !== '' && 'preview' in root.dataset) {
      location.reload()
      return
    }
    shown = sentence
    notice.replaceChildren()
    if (sentence === '') return
    const link = linkTo(location.href, 'Show the current state')
    link.addEventListener('click', (event) => {
      event.preventDefault()
      location.reload()
    })
    notice.append(sentence, link)
    if (changes) notice.append(' ', linkTo(changes, 'What changed'))
  }

  function linkTo (address, text) {
    const link = document.createElement('a')
    link.href = address
    link.textContent = text
    return link
  }

  // In a preview, the event stream says when to ask. A browser has six connections per host, so only a visible tab has
  // a stream.
  function follow () {
    let events
    const listen = () => {
      events?.close()
      if (document.hidden) return
      events = new EventSource(`${base}/events`)
      for (const type of ['open', 'added', 'changed', 'removed', 'reset']) events.addEventListener(type, ask)
    }
    document.addEventListener('visibilitychange', listen)
    listen()
  }

  prepareSnippets()
  prepareShortcuts()
  if (field) prepareSearch()
  const source = document.querySelector('.source')
  if (source) prepareLines(source)
  if ('preview' in root.dataset) follow()
  setInterval(ask, ASK_MS)
  document.addEventListener('visibilitychange', ask)
}
