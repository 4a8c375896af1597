// Pages work without this script. It searches while one types, copies, chooses lines, and says when a page is outdated.
// It never writes HTML: answers are parsed by XMLHttpRequest, and their nodes are adopted.
'use strict'
{
  const { documentElement: root } = document
  const notice = document.querySelector('.outdated')

  /** Address of the service without a slash at the end, by the browser's address bar. */
  const base = new URL(notice.dataset.home, location.href).href.replace(/[?#].*$/, '').replace(/\/$/, '')

  /** The service has put into quotes what needs them in a shell: what stands in there afterwards may need none. */
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
      // There is no clipboard over plain HTTP on another host.
      getSelection().selectAllChildren(code)
      button.textContent = 'Selected: press Ctrl C'
    }
  }

  // Search while one types.
  const QUIET_MS = 30
  const field = document.getElementById('q')
  let request
  let timer

  function search () {
    const parameters = new URLSearchParams(new FormData(field.form))
    for (const [name, value] of [...parameters]) if (value.trim() === '') parameters.delete(name)
    const address = `${base}/${parameters.size === 0 ? '' : `?${parameters}`}`
    // An older answer never replaces a newer one.
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
      // Not exchanged: what changes in it is read out.
      document.getElementById('count').textContent = request.response.getElementById('count').textContent
      root.dataset.state = request.response.documentElement.dataset.state
      tell('')
      document.title = request.response.title
      history.replaceState(undefined, '', address)
    })
    request.addEventListener('error', sayFailed)
    request.send()
  }

  // Refused, or without an answer: what is on the page stays.
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

  // From every page.
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

  // Lines: `#L12-L20`, which shift and a click on a number makes.
  function chooseLines () {
    const [, first, last] = /^#L(\d+)-L(\d+)$/.exec(location.hash) ?? []
    // By the lines that there are: an address may name any number.
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

  // A visible page asks whether it is still the same. Nothing is exchanged under the reader.
  const ASK_MS = 10_000

  let shown = ''

  async function ask () {
    if (document.hidden) return
    const { state } = root.dataset
    try {
      const headers = { accept: 'text/html', 'if-none-match': `"${state}"` }
      const { status } = await fetch(location.href, { method: 'HEAD', cache: 'no-store', headers })
      // A search has exchanged what the page shows.
      if (state !== root.dataset.state) return
      // Other answers say nothing of the page: a caller may be asked to sign in again, or to wait.
      if (status === 304) tell('')
      else if (status === 200) tell('What this page shows has changed. ', notice.dataset.changes)
      else if (status === 404 && !document.querySelector('.problem')) tell('What this page shows is gone. ')
    } catch {
      // The service does not answer: the next time it may.
    }
  }

  // Once: what is written again is read out again. A page that is as it was has nothing to tell.
  function tell (sentence, changes) {
    if (sentence === shown) return
    // The browser keeps the place where the author reads.
    if (sentence !== '' && 'preview' in root.dataset) {
      location.reload()
      return
    }
    shown = sentence
    notice.replaceChildren()
    if (sentence === '') return
    const link = linkTo(location.href, 'Show what is there now')
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

  // In a preview the stream of changes says when to ask. A browser has six connections to a host, so only a tab that is
  // seen has a stream.
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
