import t from 'tap'
import { renderMarkdown } from '../../../src/ui/markdown/render.ts'
import { PROBES } from '../../helper/markdown-probes.ts'

const TAG = /<(\/?)([a-z][a-z\d]*)((?:\s+[a-z-]+(?:="[^"]*")?)*)>/g
const ATTRIBUTE = /([a-z-]+)(?:="([^"]*)")?/g

/** Everything that the renderer may write, by element. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  a: ['href', 'rel', 'class', 'aria-hidden', 'tabindex', 'title'],
  img: ['src', 'alt', 'loading'],
  pre: ['tabindex'],
  p: ['class'],
  code: ['class'],
  span: ['class', 'title'],
  div: ['class', 'tabindex'],
  li: ['class'],
  th: ['class'],
  td: ['class'],
  ol: ['start'],
  ...Object.fromEntries(['h3', 'h4', 'h5', 'h6'].map((tag) => [tag, ['id']])),
  ...Object.fromEntries(['ul', 'table', 'thead', 'tbody', 'tr', 'blockquote', 'em', 'strong', 's', 'hr', 'br'].map((tag) => [tag, []]))
}

const ADDRESS = /^(?:https?:\/\/[^"]+|mailto:[^"]+|#[^"]*|\.\.\/\.\.\/(?:ui\/)?skills\/demo[^"]*)$/

t.test('K75: no probe makes an element or an attribute that the renderer does not write itself', (t) => {
  t.ok(PROBES.length >= 100, `${PROBES.length} probes`)
  for (const probe of PROBES) {
    const markup = renderMarkdown(probe, { path: 'SKILL.md', level: 2, skillPage: '../../ui/skills/demo', bytes: '../../skills/demo/files/' }) ?? ''
    for (const [, , tag = '', attributes = ''] of markup.matchAll(TAG)) {
      const allowed = ALLOWED[tag]
      if (allowed === undefined) t.fail(`${probe} made <${tag}>`)
      for (const [, name = '', value = ''] of attributes.matchAll(ATTRIBUTE)) {
        if (allowed?.includes(name) !== true) t.fail(`${probe} made ${name} of <${tag}>`)
        if (name === 'href' || name === 'src') t.match(value, ADDRESS, `${probe} made ${name}="${value}"`)
        if (name === 'src') t.notMatch(value, /^https?:/, `${probe} loads ${value}`)
        if (name === 'id') t.match(value, /^user-content-/)
      }
    }
    // What is left when the tags are gone has no more markup in it.
    t.notMatch(markup.replaceAll(TAG, ''), /[<>"]/, probe)
  }
  t.end()
})
