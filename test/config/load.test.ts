import { delimiter, isAbsolute, resolve } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { type Config, SETTINGS } from '../../src/config/settings.ts'
import { codePoint } from '../helper/code-point.ts'

const cwd = resolve('/srv')

/** Flags with their values, and folders. */
function load (argv: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Config {
  const positionals: string[] = []
  const options: Record<string, string[]> = {}
  for (let index = 0; index < argv.length; index++) {
    const text = argv[index] ?? ''
    const [, name = '', inline] = /^--([^=]+)(?:=(.*))?$/s.exec(text) ?? []
    if (name === '') positionals.push(text)
    else {
      (options[name.replaceAll(/-\w/g, (part) => part.slice(1).toUpperCase())] ??= []).push(
        inline ?? argv[++index] ?? '')
    }
  }
  return loadConfig({ positionals, options, env, cwd })
}

function refusal (argv: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  try {
    load(argv, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}

t.test('K2: every setting has a default, and can come from the environment', async (t) => {
  t.match(load(), {
    skillsDirs: [resolve(cwd, 'skills')], personalDir: undefined, host: '127.0.0.1', port: 8080, logLevel: 'info'
  })
  t.strictSame(load([], {
    SKILLS_DIR: ['a', resolve('/b')].join(delimiter),
    SKILLS_PERSONAL_DIR: 'mine',
    LINK_TARGETS: ['x', resolve('/y')].join(delimiter),
    CONFIG_FILE: 'c.yaml',
    STATE_DIR: 'state',
    LAYOUT: 'tree',
    HOST: '::1',
    PORT: '0',
    BASE_PATH: '/team/skills/',
    UI: '0',
    LOG_LEVEL: 'silent',
    ALLOWED_HOSTS: 'localhost, Skills.Example.org:8443,[::1]:80,::1,10.0.0.1',
    ACCESS_FILE: 'access.yaml',
    PUBLIC_URL: 'https://Skills.example/team/',
    ALLOWED_ORIGINS: 'https://App.example:443, http://localhost:5173,chrome-extension://abc',
    WATCH_POLLING: '1'
  }), {
    ...load(),
    skillsDirs: [resolve(cwd, 'a'), resolve('/b')],
    personalDir: resolve(cwd, 'mine'),
    linkTargets: [resolve(cwd, 'x'), resolve('/y')],
    configFile: resolve(cwd, 'c.yaml'),
    stateDir: resolve(cwd, 'state'),
    layout: 'tree',
    host: '::1',
    port: 0,
    basePath: '/team/skills',
    ui: false,
    logLevel: 'silent',
    allowedHosts: ['localhost', 'skills.example.org', '::1', '10.0.0.1'],
    allowedOrigins: ['https://app.example', 'http://localhost:5173', 'chrome-extension://abc'],
    accessFile: resolve(cwd, 'access.yaml'),
    publicUrl: 'https://skills.example/team',
    watchPolling: true
  })
})

t.test('K2: flags beat the environment', async (t) => {
  const env = {
    SKILLS_DIR: 'env',
    SKILLS_PERSONAL_DIR: 'env',
    LINK_TARGETS: 'env',
    CONFIG_FILE: 'env',
    STATE_DIR: 'env',
    LAYOUT: 'auto',
    HOST: '0.0.0.0',
    PORT: '1',
    BASE_PATH: '/env',
    LOG_LEVEL: 'fatal'
  }
  const argv = ['a', '--personal', 'p', '--allow-links', 'x', '--allow-links', 'y', '--config', 'c', '--state-dir',
    's', '--layout', 'flat', '--host=localhost', 'b', '--port', '65535', '--base-path', '/x', '--log-level', 'trace']
  t.strictSame(load(argv, env), {
    ...load(),
    skillsDirs: [resolve(cwd, 'a'), resolve(cwd, 'b')],
    personalDir: resolve(cwd, 'p'),
    linkTargets: [resolve(cwd, 'x'), resolve(cwd, 'y')],
    configFile: resolve(cwd, 'c'),
    stateDir: resolve(cwd, 's'),
    layout: 'flat',
    host: 'localhost',
    port: 65_535,
    basePath: '/x',
    logLevel: 'trace'
  })
})

t.test('K2: a flag hides a wrong variable, an empty variable is unset, a folder counts once and as ' +
  'it is written', async (t) => {
  const odd = `a${delimiter}b`
  t.equal(load(['--port', '1', '--port', '2'], { PORT: 'http' }).port, 2, 'the last flag')
  t.strictSame(load([], { SKILLS_DIR: '', HOST: '', PORT: '', ALLOWED_HOSTS: '', WATCH_POLLING: '' }), load())
  t.strictSame(load(['a', './a', resolve(cwd, 'a'), odd]).skillsDirs, [resolve(cwd, 'a'), resolve(cwd, odd)])
  const sources = { cwd, defaultFolder: resolve(`/${odd}`) }
  t.strictSame(loadConfig({ ...sources, env: {} }).skillsDirs, [resolve(`/${odd}`)])
  t.strictSame(loadConfig({ ...sources, env: { SKILLS_DIR: 'mine' } }).skillsDirs, [resolve(cwd, 'mine')])
})

t.test('K55: an address to listen on has one spelling, by which loopback is known', async (t) => {
  for (const [given, host] of [
    ['Localhost', 'localhost'], ['LOCALHOST', 'localhost'], ['0:0:0:0:0:0:0:1', '::1'], ['::FFFF:127.0.0.1',
      '127.0.0.1'], ['::ffff:7f00:1', '127.0.0.1'], ['FE80::1', 'fe80::1'],
    ['fe80::1%eth0', 'fe80::1%eth0'], ['0:0:0:0:0:0:0:0', '::'], ['Skills.Example', 'skills.example']
  ] as const) {
    t.match([load([], { HOST: given }).host, load([], { METRICS_HOST: given }).metricsHost], [host, host],
      given)
  }
})

t.test('K2: a bad value is refused in one line that names where it came from and what is allowed', async (t) => {
  type Case = readonly [argv: readonly string[], env: Readonly<Record<string, string>>, message: RegExp]
  const cases: readonly Case[] = [
    ...['65536', '-1', '1e3', '0x50', '80.0', ' 80', '８０', '080', 'http', '99999999999999999999'].map(
      (port) => [[], { PORT: port }, /^PORT must be a whole number from 0 to 65535/] as const),
    [['--port', '65536'], {}, /^--port must be a whole number from 0 to 65535 .*, not "65536"$/],
    [['--port='], {}, /^--port must be a whole number/],
    [['--personal='], {}, /^--personal must be a folder, not ""$/],
    ...['1.2.3', '256.1.1.1', 'a b', 'a:80', '[::1]', 'http://a', 'é.example'].map(
      (host) => [[], { HOST: host }, /^HOST must be a host name or an IP address, not /] as const),
    ...['INFO', 'verbose', '30'].map(
      (level) => [[], { LOG_LEVEL: level },
        /^LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not /] as const),
    [['--log-level', 'wran'], {}, /^--log-level must be one of trace.*, not "wran", did you mean "warn"\?$/],
    [['--layout', 'tre'], {}, /^--layout must be one of auto, .*, not "tre", did you mean "tree"\?$/],
    [[], { LOG_FORMAT: 'x\u009b' }, /^LOG_FORMAT must be one of pretty, json, not "x\\u009b"$/],
    [[], { SKILLS_DIR: `a${delimiter}` },
      /^SKILLS_DIR must be a folder, or several joined by ".", none of them empty, not ""$/],
    [[' '], {}, /^DIR must be a folder, not " "$/],
    ...['SKILLS_DIR', 'SKILLS_PERSONAL_DIR', 'LINK_TARGETS', 'STATE_DIR', 'CONFIG_FILE', 'ACCESS_FILE', 'TRUST_FILE',
      'LOCKED', 'AUDIT_LOG', 'HOST', 'PORT', 'BASE_PATH'].map(
      (variable) => [[], { [variable]: ' \t' }, new RegExp(`^${variable} must be .*, not " \\\\t"$`)] as const),
    ...['a,', ',', '*', 'a b', 'http://a', '[a]', '[1.2.3.4]', 'a:b', '[::1]x'].map(
      (hosts) => [[], { ALLOWED_HOSTS: hosts },
        /^ALLOWED_HOSTS must be a host name or an IP address, or several joined by ",", none of them empty, not "/] as const),
    ...['*', 'null', 'app.example', 'https://', 'https://a/', 'https://a/b', 'https://a,', ',', 'https://u@a',
      'https://a b', 'https://a:99999', 'https://a?b', 'https://*.example', '*://a'].map(
      (origins) => [[], { ALLOWED_ORIGINS: origins },
        /^ALLOWED_ORIGINS must be an origin such as https:\/\/app\.example, or several joined by ","/] as const),
    ...['10.0.0.0/33', '::1/129', '10.0.0', 'localhost', '10.0.0.1:80', '10.0.0.0/8/8', 'fe80::1%eth0'].map(
      (proxies) => [[], { TRUSTED_PROXIES: proxies }, /^TRUSTED_PROXIES must be /] as const),
    ...['yes', 'TRUE', '2'].map((flag) =>
      [[], { WATCH_POLLING: flag }, /^WATCH_POLLING must be true, false, 1 or 0, not /] as const),
    // A timer of Node that is set to more milliseconds than 31 bits goes off at once.
    ...['1209601', '2592000', '-1', '1.5'].map(
      (seconds) => [[], { REVISION_KEEP_SECONDS: seconds },
        /^REVISION_KEEP_SECONDS must be a whole number of seconds up to 1209600 \(two weeks\), not /] as const)
  ]
  for (const [argv, env, message] of cases) {
    const line = refusal(argv, env)
    t.match(line, message, JSON.stringify([argv, env]))
    t.notMatch(line, '\n')
  }
})

t.test('K2: whatever the arguments and variables are, the outcome is a valid configuration or ' +
  'one short line', async (t) => {
  const text = fc.oneof(fc.string({ unit: codePoint }),
    fc.constantFrom('0', '80', '::1', 'a', 'a,b', '--port', '--host', '--', 'serve', 'info'))
  const names = Object.values(SETTINGS).map(({ variable }) => variable)
  fc.assert(fc.property(fc.array(text, {
    maxLength: 5
  }), fc.dictionary(fc.constantFrom(...names), text), (argv, env) => {
    try {
      return isValid(load(argv, env))
    } catch (error) {
      const isRefusal = error instanceof ConfigError
      return isRefusal && !error.message.includes('\n') && error.message.length < 700
    }
  }))
  t.pass()
})

function isValid (config: Config): boolean {
  const { skillsDirs, personalDir, host, port, logLevel, allowedHosts, allowedOrigins, watchPolling } = config
  return skillsDirs.length > 0 && [skillsDirs, allowedHosts, allowedOrigins].every((list) => !list.includes('')) &&
    [...skillsDirs, personalDir ?? cwd].every((folder) => isAbsolute(folder)) &&
    host !== '' && Number.isInteger(port) && port >= 0 && port <= 65_535 &&
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'].includes(logLevel) &&
    typeof watchPolling === 'boolean'
}
