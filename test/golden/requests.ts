import { ODD_NAMES } from './odd-skills.ts'

/** A request. `{etag}` in a header is the tag of the answer before; `{revision:NAME}` anywhere is the skill's present revision. */
export interface GoldenRequest {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** How many characters of the body are recorded; default 300. */
  readonly shown?: number
}

type Headers = Readonly<Record<string, string>>

const JSON_TYPE = { 'content-type': 'application/json' }
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

const get = (path: string, headers: Headers = {}): GoldenRequest => ({ method: 'GET', path, headers })
const full = (path: string, headers: Headers = {}): GoldenRequest => ({ ...get(path, headers), shown: 4000 })
const send = (method: string, path: string, headers: Headers = {}): GoldenRequest => ({ method, path, headers })
const post = (path: string, body: unknown, headers: Headers = {}): GoldenRequest => ({
  method: 'POST', path, headers: { ...JSON_TYPE, ...headers }, body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
})
const call = (name: string, args: unknown) => post('/agent/tool-call', { name, arguments: args })
const run = (name: string, args: unknown) => post(`/agent/tools/${name}`, args)
const name = encodeURIComponent

const TEXT = { accept: 'text/markdown' }
const AS_JSON = { accept: 'application/json' }
const FILES = '/skills/files/files'

/** Names that are no skills, or not safe. */
const BAD_NAMES = ['nowhere', 'SKILL.md', '..', '.', '', 'a/b', 'a\\b', '../plain', '.hidden-skill', 'PLAIN', 'plain\0', 'link-refused', 'constructor']

/** Paths in skills that are refused. */
const BAD_PATHS = [
  '../plain/SKILL.md', '..\\..\\Windows\\System32', '/etc/passwd', 'C:\\Windows', '\\\\host\\share', 'nowhere.md', '', '.', 'docs', 'a\0b', 'x'.repeat(5000)
]

/** A call in every dialect, and what carries calls. */
const DIALECTS: readonly unknown[] = [
  { id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"weather"}' } },
  { role: 'assistant', content: null, function_call: { name: 'get_skill', arguments: '{"skill_name":"weather"}' } },
  { type: 'function_call', call_id: 'call_1', name: 'get_skill', arguments: '{"skill_name":"weather"}' },
  { required_action: { type: 'submit_tool_outputs', submit_tool_outputs: { tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"weather"}' } }] } } },
  { type: 'tool_use', id: 'toolu_1', name: 'get_skill', input: { skill_name: 'weather' } },
  { functionCall: { id: 'call-1', name: 'get_skill', args: { skill_name: 'weather' } } },
  { function_call: { id: 'call-1', name: 'get_skill', args: { skill_name: 'weather' } } },
  { type: 'function_call', id: 'fc_1', name: 'get_skill', arguments: { skill_name: 'weather' } },
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'weather' } } },
  { toolUse: { toolUseId: 'tooluse_1', name: 'get_skill', input: { skill_name: 'weather' } } },
  { model: 'qwen3', message: { role: 'assistant', content: '', tool_calls: [{ function: { name: 'get_skill', arguments: { skill_name: 'weather' } } }] }, done: true },
  { role: 'assistant', toolCalls: [{ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"weather"}' } }] },
  { message: { role: 'assistant', toolCalls: [{ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"weather"}' } }] } },
  { type: 'tool-call', toolCallId: 'call-1', toolName: 'get_skill', input: { skill_name: 'weather' } },
  { name: 'get_skill', args: { skill_name: 'weather' }, id: 'call_1', type: 'tool_call' },
  { name: 'get_skill', parameters: { skill_name: 'weather' } },
  { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'list_skills', arguments: '' } }, { id: 'b', type: 'function', function: { name: 'nope', arguments: '{}' } }] },
  { choices: [{ message: { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'list_skills', arguments: '{}' } }] } }] },
  { output: [{ type: 'reasoning' }, { type: 'function_call', call_id: 'a', name: 'list_skills', arguments: '{}' }] },
  { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'x' }, { type: 'tool_use', id: 'a', name: 'list_skills', input: {} }, { type: 'tool_use', id: 'b', name: 'get_skill', input: { skill_name: 'nowhere' } }] },
  { candidates: [{ content: { role: 'model', parts: [{ functionCall: { name: 'list_skills' } }, { functionCall: { name: 'get_skill', args: { skill_name: 5 } } }] } }] },
  { tool_calls: [{ id: 'a', type: 'function', function: { name: 'list_skills', arguments: '{}' } }] },
  [{ name: 'list_skills', arguments: {} }, { name: 'get_skill', arguments: {} }],
  []
]

/** What is no call, and calls whose arguments are bad. */
const BAD_CALLS: readonly unknown[] = [
  {}, 5, null, '"x"', '{', '{"a":1}x', { role: 'tool', content: 'x' }, { type: 'custom', custom: { name: 'x', input: 'y' } }, { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  { id: 'c', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":' } },
  { id: 'c', type: 'function', function: { name: 'get_skill', arguments: '[]' } },
  { id: 'c', type: 'function', function: { name: 'get_skill', arguments: '{"__proto__":{}}' } },
  { name: 'get_skill', arguments: { skill_name: 'plain', constructor: 1 } },
  { name: 'get_skill', arguments: { skill_name: 'plain', extra: 1 } }, { name: 'Get_Skill', arguments: {} }, { name: '__proto__', arguments: {} },
  Array.from({ length: 129 }, () => ({ name: 'list_skills', arguments: {} })),
  `${'['.repeat(80)}${']'.repeat(80)}`
]

const LEGACY = { accept: 'application/json, text/event-stream' }
const MODERN_META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }

function mcp (method: string, params: Readonly<Record<string, unknown>> = {}, headers: Headers = {}): GoldenRequest {
  return post('/mcp', { jsonrpc: '2.0', id: 1, method, params }, { ...LEGACY, ...headers })
}

function modern (method: string, params: Readonly<Record<string, unknown>> = {}): GoldenRequest {
  const named = params[method === 'resources/read' ? 'uri' : 'name']
  return mcp(method, { _meta: MODERN_META, ...params }, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...typeof named === 'string' && { 'mcp-name': named } })
}

/** The service on the example skills. */
export const EXAMPLE_REQUESTS: readonly GoldenRequest[] = [
  full('/'), get('/', BROWSER), get('/livez'), full('/readyz'), get('/openapi.json'), get('/openapi.yaml'), get('/docs'), get('/docs/'), get('/favicon.ico'), get('/metrics'),
  full('/skills'), get('/skills', { 'if-none-match': '{etag}' }), get('/skills/'), get('/skills?x=1'), send('HEAD', '/skills'), send('OPTIONS', '/skills'),
  get('/skills/calculator'), get('/skills/calculator', { 'if-none-match': '{etag}' }), get('/skills/calculator', { 'if-none-match': '*' }), send('HEAD', '/skills/calculator'),
  get('/skills/calculator', TEXT), get('/skills/calculator', { accept: 'text/plain' }), get('/skills/calculator', { accept: 'text/html' }), get('/skills/calculator', { accept: 'image/png' }),
  get('/skills/calculator', { 'accept-encoding': 'gzip' }), get('/skills/calculator', { 'accept-encoding': 'gzip', 'if-none-match': '{etag}' }), get('/skills/calculator', { 'accept-encoding': 'br' }), get('/skills/calculator', { 'accept-encoding': 'identity;q=0' }),
  get('/skills/calculator?revision=current'), get('/skills/calculator?revision={revision:calculator}'), get('/skills/calculator?revision=sha256:0'), get(`/skills/calculator?revision=sha256:${'0'.repeat(64)}`),
  get('/skills/calculator', { 'if-match': '"{revision:calculator}"' }), get('/skills/calculator', { 'if-match': '"other"' }), get('/skills/calculator', { 'if-match': '*' }), get('/skills/calculator?nope=1'),
  get('/skills/calculator/files/examples/basic.py', { 'if-match': '"other"' }), get('/catalog/calculator', { 'if-match': '"other"' }), get('/skills/calculator/files?revision={revision:calculator}'),
  get('/skills/calculator/archive.zip?revision={revision:calculator}'), get(`/skills/calculator/archive.zip?revision=sha256:${'0'.repeat(64)}`), get('/catalog/calculator?revision={revision:calculator}'),
  get('/skills/calculator/files/examples/basic.py?revision={revision:calculator}'),
  ...['DELETE', 'PUT', 'PATCH', 'POST'].map((method) => send(method, '/skills/calculator')), send('OPTIONS', '/skills/calculator'), send('PUT', '/agent/tool-call'), send('GET', '/agent/tool-call'), send('GET', '/validate'),
  get('/nope'), get('/skills/calculator/SKILL.md'), get('/skills/calculator/nope'), get('/skills/%E0%A4%A'), get('/%00'), get(`/skills/${'a'.repeat(3000)}`), get('//skills'), get('/SKILLS'),
  full('/skills/calculator/files'), get('/skills/brand-assets/files'), get('/skills/brand-assets/files', { 'if-none-match': '{etag}' }), send('HEAD', '/skills/calculator/files'),
  get('/skills/calculator/files/examples/basic.py'), get('/skills/calculator/files/examples/basic.py', { 'if-none-match': '{etag}' }), send('HEAD', '/skills/calculator/files/examples/basic.py'),
  get('/skills/calculator/files/examples/basic.py', { range: 'bytes=0-9' }), get('/skills/calculator/files/examples/basic.py', { range: 'bytes=-5' }), get('/skills/calculator/files/examples/basic.py', { range: 'bytes=5-' }),
  get('/skills/calculator/files/examples/basic.py', { range: 'bytes=99999-' }), get('/skills/calculator/files/examples/basic.py', { range: 'bytes=0-1,4-5' }), get('/skills/calculator/files/examples/basic.py', { range: 'lines=1' }),
  get('/skills/calculator/files/examples/basic.py', { range: 'bytes=0-9', 'if-range': '"other"' }), get('/skills/calculator/files/examples/basic.py', { 'accept-encoding': 'gzip' }),
  get('/skills/calculator/files/examples/basic.py', AS_JSON), get('/skills/calculator/files/examples/basic.py?encoding=base64', AS_JSON), get('/skills/calculator/files/examples/basic.py?encoding=hex', AS_JSON),
  get('/skills/brand-assets/files/assets/logo.png'), get('/skills/brand-assets/files/assets/logo.svg'), get('/skills/brand-assets/files/assets/logo.png', AS_JSON), get('/skills/brand-assets/files/assets/logo.png?encoding=base64', AS_JSON),
  get('/skills/brand-assets/files/assets/logo.png', { accept: 'application/json, text/plain, */*' }), get('/skills/brand-assets/files/assets/logo.png', { 'accept-encoding': 'gzip', range: 'bytes=0-3' }),
  get('/skills/calculator/archive.zip'), get('/skills/calculator/archive.zip', { 'if-none-match': '{etag}' }), get('/skills/calculator/archive.zip?wrap=true'), get('/skills/calculator/archive.zip?wrap=x'), send('HEAD', '/skills/calculator/archive.zip'),
  get('/skills/calculator/archive.zip', { range: 'bytes=0-3' }), get('/skills/nowhere/archive.zip'),
  full('/catalog?limit=2'), get('/catalog'), get('/catalog', { 'if-none-match': '{etag}' }), get('/catalog', { 'accept-encoding': 'gzip' }), get('/catalog?limit=2&cursor={cursor}'), get('/catalog?limit=0'), get('/catalog?limit=501'), get('/catalog?limit=x'),
  get('/catalog?cursor=x'), get('/catalog?valid=true&limit=1'), get('/catalog?valid=false'), get('/catalog?valid=maybe'), get('/catalog?nope=1'), get('/catalog?limit=1&limit=2'), get('/catalog?q='),
  get('/catalog?q=logo&limit=1'), get('/catalog?q=outage&limit=1'), get('/catalog?q=recette&limit=1'), get('/catalog?q=zzzzzz'), send('HEAD', '/catalog'),
  full('/catalog/calculator'), full('/catalog/calculator?target=all'), full('/catalog/calculator?target=codex,spec'), get('/catalog/calculator?target=nope'), get('/catalog/nowhere'),
  ...['openai', 'openai-responses', 'anthropic', 'gemini', 'mcp', 'bedrock', 'nope'].map((format) => get(`/agent/tools?format=${format}`)), get('/agent/tools', { 'if-none-match': '{etag}' }),
  ...['reader', 'explore', 'wave', 'neovate', 'all', 'nope'].map((toolset) => full(`/agent/tools?toolset=${toolset}`)),
  get('/agent/prompt'), ...['json', 'markdown', 'xml', 'nope'].map((format) => get(`/agent/prompt?format=${format}`)), get('/agent/prompt?budget=600'), get('/agent/prompt?budget=0'), get('/agent/prompt?budget=x'),
  ...DIALECTS.map((body) => post('/agent/tool-call', body)),
  ...BAD_CALLS.map((body) => ({ ...post('/agent/tool-call', body), shown: 700 })),
  post('/agent/tool-call', '{}', { 'content-type': 'text/plain' }), post('/agent/tool-call', '<a/>', { 'content-type': 'application/xml' }), post('/agent/tool-call', Buffer.from([0x22, 0xff, 0x22])), post('/agent/tool-call', ''),
  post('/agent/tool-call', Buffer.alloc(1_048_577, ' ')), post('/agent/tool-call', '{}', { 'content-encoding': 'gzip' }),
  post('/agent/tool-call?others=skip', { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'list_skills', arguments: '' } }, { id: 'b', type: 'function', function: { name: 'nope', arguments: '{}' } }] }),
  post('/agent/tool-call?toolset=wave', { name: 'get_skill', arguments: { skill_name: 'weather' } }), post('/agent/tool-call?revision=x', { name: 'list_skills' }),
  post('/agent/tool-call', { name: 'get_skill', arguments: { skill_name: 'weather' } }, { 'if-match': '"other"' }),
  run('list_skills', {}), run('get_skill', { skill_name: 'weather' }), run('read_file_in_skill', { skill_name: 'calculator', file_path: 'examples/basic.py' }), run('Skill', { skill_name: 'weather' }), run('skill', { skill: ' weather ' }),
  run('search_skills', { query: 'exact decimal arithmetic', limit: 1 }), run('list_skill_files', { skill_name: 'calculator' }), run('nope', {}), run('get_skill', []), run('get_skill', {}), send('GET', '/agent/tools/get_skill'),
  get('/llms.txt'), get('/llms.txt', { 'if-none-match': '{etag}' }),
  get('/.well-known/agent-skills/index.json'), get('/.well-known/skills/index.json'), get('/.well-known/skills/calculator/SKILL.md'), get('/.well-known/skills/calculator/examples/basic.py'), get('/.well-known/skills/calculator/nope'), get('/.well-known/skills/nowhere/SKILL.md'),
  get('/.well-known/agent-skills/{artifact:calculator}'), get(`/.well-known/agent-skills/calculator/${'0'.repeat(64)}/archive.zip`), get(`/.well-known/agent-skills/calculator/${'0'.repeat(64)}/SKILL.md`), get('/.well-known/agent-skills/calculator/x/archive.zip'),
  full('/skills/calculator/.well-known/agent-skills/index.json'), full('/skills/calculator/.well-known/skills/index.json'), get('/skills/calculator/.well-known/skills/calculator/SKILL.md'), get('/skills/nowhere/.well-known/agent-skills/index.json'),
  get('/.well-known/oauth-protected-resource'), get('/.well-known/nope'), get('/t/skl_x/.well-known/agent-skills/index.json'),
  post('/validate', '---\nname: sent\ndescription: A skill that is sent\n---\nBody\n', { 'content-type': 'text/markdown' }), { ...post('/validate?target=all', '---\nname: Sent\n---\n', { 'content-type': 'text/markdown' }), shown: 2000 },
  post('/validate', 'not a zip', { 'content-type': 'application/zip' }), post('/validate', '{}'), post('/validate', '', { 'content-type': 'text/markdown' }), post('/validate?target=nope', 'x', { 'content-type': 'text/markdown' }), post('/hooks/git', {}),
  { ...mcp('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }), shown: 1200 }, mcp('initialize', { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: { name: 't', version: '1' } }), mcp('ping'),
  { ...mcp('tools/list'), shown: 3000 }, mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'weather' } }), mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'nowhere' } }), mcp('tools/call', { name: 'get_skill', arguments: {} }),
  mcp('tools/call', { name: 'nope', arguments: {} }), mcp('tools/call', { name: 'list_skill_files', arguments: { skill_name: 'calculator' } }), mcp('tools/call', { name: 'search_skills', arguments: { query: 'logo', limit: 1 } }),
  mcp('resources/list'), mcp('resources/templates/list'), mcp('resources/read', { uri: 'skill://calculator/SKILL.md' }), mcp('resources/read', { uri: 'skill://brand-assets/assets/logo.png' }), mcp('resources/read', { uri: 'skill://nowhere/SKILL.md' }),
  mcp('resources/read', { uri: 'skill://calculator/../weather/SKILL.md' }), mcp('resources/read', { uri: 'file:///etc/passwd' }), mcp('resources/list', { cursor: 'x' }), mcp('prompts/list'), mcp('prompts/get', { name: 'calculator' }), mcp('prompts/get', { name: 'nowhere' }),
  mcp('nope'), post('/mcp', '{', LEGACY), post('/mcp', { jsonrpc: '2.0', method: 'notifications/initialized' }, LEGACY), post('/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }), get('/mcp'), send('DELETE', '/mcp'),
  { ...modern('server/discover'), shown: 1200 }, modern('tools/list'), modern('tools/call', { name: 'get_skill', arguments: { skill_name: 'weather' } }), modern('tools/call', { name: 'nope', arguments: {} }), modern('resources/list'),
  modern('resources/read', { uri: 'skill://calculator/SKILL.md' }), modern('resources/read', { uri: 'skill://nowhere/SKILL.md' }), modern('resources/directory/read', { uri: 'skill://calculator' }), modern('prompts/list'), modern('ping'), modern('nope'),
  ...['/ui', '/ui/', '/ui/skills', '/ui/skills/calculator', '/ui/skills/calculator/files', '/ui/skills/calculator/files/SKILL.md', '/ui/skills/calculator/files/examples/basic.py', '/ui/skills/brand-assets/files/assets/logo.png',
    '/ui/skills/calculator/changes', '/ui/skills/nowhere', '/ui/skills/calculator/files/nope', '/ui/status', '/ui/nope', '/ui/assets/nope.css', '/?q=logo', '/?valid=false', '/nope'].map((path) => get(path, BROWSER)),
  get('/skills', { host: 'evil.example' }), get('/skills', { origin: 'https://evil.example' }), post('/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { ...LEGACY, origin: 'https://evil.example' })
]

/** The service on odd skills. */
export const ODD_REQUESTS: readonly GoldenRequest[] = [
  full('/readyz'), full('/skills'), get('/catalog'), get('/catalog?valid=false&limit=3'), get('/agent/prompt'), get('/llms.txt'), get('/.well-known/agent-skills/index.json'), get('/.well-known/skills/index.json'), { ...mcp('resources/list'), shown: 300 },
  ...ODD_NAMES.flatMap((each) => [get(`/skills/${name(each)}`), { ...get(`/skills/${name(each)}/files`), shown: 700 }, { ...get(`/catalog/${name(each)}`), shown: 2200 }]),
  ...ODD_NAMES.map((each) => get(`/catalog/${name(each)}?target=all`)),
  ...ODD_NAMES.map((each) => run('Skill', { skill_name: each })),
  ...ODD_NAMES.map((each) => run('skill', { skill: each })),
  ...BAD_NAMES.flatMap((each) => [get(`/skills/${name(each)}`), run('get_skill', { skill_name: each }), run('read_file_in_skill', { skill_name: each, file_path: 'SKILL.md' }), run('Skill', { skill_name: each }), run('skill', { skill: each })]),
  ...BAD_PATHS.flatMap((each) => [get(`/skills/plain/files/${name(each)}`), run('read_file_in_skill', { skill_name: 'plain', file_path: each })]),
  ...['binary.bin', 'pixel.png', 'page.html', 'drawing.svg', 'data.json', 'script.py', 'utf16.txt', 'latin1.txt', 'big.txt', 'huge.txt', 'no-extension', 'with space & (signs) #1 50%.txt', '\u00FCml\u00E4ut/\u65E5\u672C.md', 'ends-with-dot.', 'pipe']
    .flatMap((path) => [get(`${FILES}/${path.split('/').map(name).join('/')}`), get(`${FILES}/${path.split('/').map(name).join('/')}`, AS_JSON), run('read_file_in_skill', { skill_name: 'files', file_path: path })]),
  ...['.env', '.env.example', '.git/config', '.npmrc', '.ssh/id_rsa', '.dotfile', 'notes.md~', 'node_modules/x/index.js', '.DS_Store'].map((path) => get(`/skills/hidden/files/${path}`)),
  ...['drafts/a.md', 'b.tmp', 'keep.tmp', 'root-ignored.log', '.skillignore'].map((path) => get(`/skills/ignoring/files/${path}`)),
  ...['alias.md', 'manual/real.md', 'escape.txt', 'escape-folder/secret.txt', 'dangling.md', 'loop/SKILL.md', 'hard.md', 'docs/../SKILL.md'].flatMap((path) => [get(`/skills/linked/files/${path}`), run('read_file_in_skill', { skill_name: 'linked', file_path: path })]),
  ...['SKILL.md', 'SKILL.MD', 'skill.md'].flatMap((path) => ['lower-main', 'upper-main', 'two-mains'].flatMap((each) => [get(`/skills/${each}/files/${path}`), run('read_file_in_skill', { skill_name: each, file_path: path })])),
  get('/skills/big/files/big.txt'), get(`${FILES}/big.txt`, { range: 'bytes=1999990-' }), get(`${FILES}/big.txt`, { 'accept-encoding': 'gzip' }), get(`${FILES}/huge.txt`, { range: 'bytes=-1' }), get(`${FILES}/page.html`, BROWSER),
  ...['no-main', 'linked', 'hidden', 'ignoring', 'two-mains', 'too-large', 'empty-folder', '\u00FCnicode \u65E5\u672C'].map((each) => get(`/skills/${name(each)}/archive.zip`)),
  call('list_skills', {}), call('get_skill', { skill_name: 'bom' }), call('get_skill', { skill_name: 'crlf' }), call('get_skill', { skill_name: 'latin1-main' }), call('get_skill', { skill_name: 'too-large' }), call('Skill', { skill_name: 'bad-yaml' }), call('skill', { skill: 'another-name' }), call('skill', { skill: 'bad-yaml' }),
  call('search_skills', { query: 'pelican', limit: 3 }), call('list_skill_files', { skill_name: 'linked' }), call('list_skill_files', { skill_name: 'nowhere' }), get('/catalog?q=pelican'),
  ...['/', '/ui/status', ...['plain', 'markup', 'bad-yaml', 'no-main', 'two-mains', 'too-large', 'linked', '__proto__', '\u00FCnicode \u65E5\u672C'].map((each) => `/ui/skills/${name(each)}`), '/ui/skills/files/files/binary.bin', '/ui/skills/files/files/big.txt', '/ui/skills/files/files/page.html'].map((path) => get(path, BROWSER))
]

/** The service after `odd/plain` has been edited; `{old}` is the revision before. */
export const EDITED_REQUESTS: readonly GoldenRequest[] = [
  ...['', '?revision={old}', '?revision=current', '?revision={revision:plain}', `?revision=sha256:${'0'.repeat(64)}`].flatMap((query) =>
    ['/skills/plain', '/skills/plain/files', '/skills/plain/files/docs/guide.md', '/skills/plain/archive.zip', '/catalog/plain'].map((path) => get(path + query))),
  get('/skills/plain', { 'if-match': '"{old}"' }), get('/ui/skills/plain/changes?from={old}', BROWSER)
]

/** A service whose only folder is missing. */
export const MISSING_REQUESTS: readonly GoldenRequest[] = [
  get('/livez'), full('/readyz'), get('/skills'), get('/skills/plain'), get('/catalog'), get('/agent/prompt'), get('/llms.txt'), get('/.well-known/agent-skills/index.json'), get('/', BROWSER), call('list_skills', {}), call('get_skill', { skill_name: 'plain' }),
  run('Skill', { skill_name: 'plain' }), run('skill', { skill: 'plain' }), call('search_skills', { query: 'x' }), mcp('resources/list'), get('/agent/tools?toolset=wave')
]

/** What callers of a service with an access file send. */
const ASKED = ['/', '/livez', '/readyz', '/skills', '/catalog?limit=1', '/skills/shared-name', '/skills/plain', '/skills/weather', '/skills/weather/files/SKILL.md', '/skills/plain/archive.zip', '/catalog/mine', '/llms.txt', '/agent/prompt?budget=400', '/agent/tools?toolset=wave',
  '/.well-known/agent-skills/index.json', '/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp', '/metrics', '/events?last_event_id=x&nope=1', '/ui/status', '/nope', '/openapi.json']

export const ACCESS_REQUESTS: readonly GoldenRequest[] = [
  ...[{}, { authorization: 'Bearer {token:alice}' }, { authorization: 'Bearer {token:ops}' }].flatMap((headers) => [
    ...ASKED.map((path) => get(path, headers)), post('/agent/tool-call', { name: 'get_skill', arguments: { skill_name: 'plain' } }, headers), post('/mcp', { jsonrpc: '2.0', id: 1, method: 'resources/list', params: {} }, { ...LEGACY, ...headers }), get('/ui/skills/plain', { ...BROWSER, ...headers })
  ]),
  ...['Bearer', 'Bearer x', 'Bearer sks_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'Basic eDp5', 'Bearer eyJhbGciOiJub25lIn0.e30.'].map((authorization) => get('/skills', { authorization })),
  get('/skills?access_token={token:alice}'), send('OPTIONS', '/skills'), send('DELETE', '/skills'),
  get('/t/{link}/.well-known/agent-skills/index.json'), get('/t/{link}/.well-known/skills/index.json'), get('/t/{link}/.well-known/skills/weather/SKILL.md'), get('/t/{link}/skills'), get('/t/skl_x/.well-known/agent-skills/index.json')
]
