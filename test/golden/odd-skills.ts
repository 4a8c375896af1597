import { execFileSync } from 'node:child_process'
import { cpSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const EXAMPLES = fileURLToPath(new URL('../../skills', import.meta.url))

function main (name: string, body = `# ${name}\n\nInstructions of ${name}.\n`, more = ''): string {
  return `---\nname: ${name}\ndescription: What ${name} is for\n${more}---\n${body}`
}

/** Files of the roots `odd`, `more` and `own`, and of what lies next to them. */
const FILES: Readonly<Record<string, string | Buffer>> = {
  'odd/plain/SKILL.md': main('plain', '# Plain\n\nRead [the guide](docs/guide.md), and `docs/missing.md`.\n'),
  'odd/plain/docs/guide.md': '# Guide\n',
  'odd/plain/empty.txt': '',
  'odd/no-frontmatter/SKILL.md': 'Just text.\n',
  'odd/bad-yaml/SKILL.md': '---\nname: [unclosed\ndescription: "x\n---\nBody\n',
  'odd/colon/SKILL.md': '---\nname: colon\ndescription: Helps: with things\n---\nBody\n',
  'odd/crlf/SKILL.md': main('crlf').replaceAll('\n', '\r\n'),
  'odd/markup/SKILL.md': main('markup',
    '# Markup\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![i](https://example.com/i.png)\n\n| a | b ' +
      '|\n|---|---|\n| 1 | 2 |\n'),
  'odd/upper-main/SKILL.MD': main('upper-main'),
  'odd/two-mains/SKILL.md': main('two-mains', 'Of SKILL.md\n'),
  'odd/two-mains/SKILL.MD': main('two-mains', 'Of SKILL.MD\n'),
  'odd/no-main/notes.txt': 'no main file here\n',
  'odd/latin1-main/SKILL.md': Buffer.from('---\nname: latin1-main\ndescription: caf\xe9\n---\n', 'latin1'),
  'odd/too-large/SKILL.md': Buffer.alloc(1_048_577, 'a'),
  'odd/files/SKILL.md': main('files'),
  'odd/files/binary.bin': Buffer.from(Array.from({ length: 256 }, (_, index) => index)),
  'odd/files/pixel.png': Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'),
  'odd/files/page.html': '<!doctype html><script>alert(1)</script>\n',
  'odd/files/drawing.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>\n',
  'odd/files/data.json': '{"a": 1}\n',
  'odd/files/script.py': 'print("hello")\n',
  'odd/files/utf16.txt': Buffer.from('\uFEFFgr\u00FC\u00DFe\n', 'utf16le'),
  'odd/files/latin1.txt': Buffer.from('gr\xfc\xdfe aus K\xf6ln\n', 'latin1'),
  'odd/files/big.txt': Buffer.alloc(2_000_000, 'line of a big file\n'),
  'odd/files/huge.txt': Buffer.alloc(10_485_761, 'x'),
  'odd/files/no-extension': 'text\n',
  'odd/files/with space & (signs) #1 50%.txt': 'space\n',
  'odd/files/\u00FCml\u00E4ut/\u65E5\u672C.md': 'unicode\n',
  'odd/files/ends-with-dot.': 'dot\n',
  'odd/hidden/SKILL.md': main('hidden'),
  'odd/hidden/.env': 'SECRET=1\n',
  'odd/hidden/.env.example': 'SECRET=\n',
  'odd/hidden/.git/config': 'secret\n',
  'odd/hidden/.npmrc': 'secret\n',
  'odd/hidden/.ssh/id_rsa': 'secret\n',
  'odd/hidden/.dotfile': 'shown\n',
  'odd/hidden/notes.md~': 'backup\n',
  'odd/hidden/node_modules/x/index.js': 'x\n',
  'odd/hidden/.DS_Store': 'x',
  'odd/ignoring/SKILL.md': main('ignoring'),
  'odd/ignoring/.skillignore': 'drafts/\n*.tmp\n!keep.tmp\n',
  'odd/ignoring/drafts/a.md': 'draft\n',
  'odd/ignoring/b.tmp': 'b\n',
  'odd/ignoring/keep.tmp': 'keep\n',
  'odd/ignoring/root-ignored.log': 'log\n',
  'odd/.skillignore': '*.log\n',
  'odd/.hidden-skill/SKILL.md': main('hidden-skill'),
  'odd/\u00FCnicode \u65E5\u672C/SKILL.md': main('\u00FCnicode \u65E5\u672C'),
  'odd/__proto__/SKILL.md': main('__proto__'),
  'odd/linked/SKILL.md': main('linked'),
  'odd/linked/docs/real.md': 'real\n',
  'odd/a-file.md': 'not a skill\n',
  'odd/shared-name/SKILL.md': main('shared-name', 'Of the first root\n'),
  'more/shared-name/SKILL.md': main('shared-name', 'Of the second root\n'),
  'more/only-more/SKILL.md': main('only-more', '# Pelican\n\nAbout pelicans and other birds.\n'),
  'own/shared-name/SKILL.md': main('shared-name', 'Of the personal root\n'),
  'own/mine/SKILL.md': main('mine'),
  'outside/secret.txt': 'never served\n',
  'outside/allowed/SKILL.md': main('allowed'),
  'outside/refused/SKILL.md': main('refused'),
  'elsewhere/skill/SKILL.md': main('skill')
}

/** Path of the link, and where it leads. */
const LINKS: Readonly<Record<string, string>> = {
  'odd/linked/alias.md': 'SKILL.md',
  'odd/linked/manual': 'docs',
  'odd/linked/escape.txt': '../../outside/secret.txt',
  'odd/linked/escape-folder': '../../outside',
  'odd/linked/dangling.md': 'nowhere.md',
  'odd/linked/loop': '.',
  'odd/other-name': 'plain',
  'odd/link-allowed': '../elsewhere/skill',
  'odd/link-refused': '../outside/refused',
  'odd/link-dangling': '../nowhere'
}

/** Fills a folder with `skills`, the examples, and with what is odd: `odd`, `more`, `own`, `elsewhere`, `outside`. */
export function writeOddSkills (folder: string): void {
  cpSync(EXAMPLES, join(folder, 'skills'), { recursive: true })
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  for (const [path, target] of Object.entries(LINKS)) symlinkSync(target, join(folder, path))
  linkSync(join(folder, 'odd/plain/docs/guide.md'), join(folder, 'odd/linked/hard.md'))
  execFileSync('mkfifo', [join(folder, 'odd/files/pipe')])
}
