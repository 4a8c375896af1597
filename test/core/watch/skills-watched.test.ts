import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BESIDE_NETWORK_DISK, expectHint, expectWatched, targetsIn, watchRoot, type WatchedOptions } from '../../helper/watched-roots.ts'

/** Made anew each time: tap takes one object in two places for a cycle. */
function skill () {
  return { 'SKILL.md': 'text' }
}

t.test('K52: changes inside a skill give a hint with its name', async (t) => {
  const root = t.testdir({
    alpha: skill(),
    beta: skill(),
    'gamma~': skill(),
    linking: {
      ...skill(),
      loop: t.fixture('symlink', '.'),
      through: t.fixture('symlink', 'SKILL.md/x'),
      long: t.fixture('symlink', 'x'.repeat(300))
    }
  })
  const watched = await watchRoot(t, root)

  await t.test('an edit in place', () =>
    expectHint(watched, 'alpha', () => { fs.appendFileSync(join(root, 'alpha/SKILL.md'), 'more') }))

  await t.test('an atomic save, every one of twenty', async () => {
    for (let i = 0; i < 20; i++) {
      await expectHint(watched, 'beta', () => {
        fs.writeFileSync(join(root, 'beta/.SKILL.md.tmp'), String(i))
        fs.renameSync(join(root, 'beta/.SKILL.md.tmp'), join(root, 'beta/SKILL.md'))
      })
    }
  })

  await t.test('a file beside the main file: made, edited, removed', async () => {
    const file = join(root, 'alpha/notes.md')
    await expectHint(watched, 'alpha', () => { fs.writeFileSync(file, '') })
    await expectHint(watched, 'alpha', () => { fs.appendFileSync(file, 'x') })
    await expectHint(watched, 'alpha', () => { fs.rmSync(file) })
  })

  await t.test('permissions that change', () =>
    expectHint(watched, 'alpha', () => { fs.chmodSync(join(root, 'alpha/SKILL.md'), 0o600) }))

  await t.test('a FIFO, and an edit beside it', async () => {
    await expectHint(watched, 'alpha', () => { execFileSync('mkfifo', [join(root, 'alpha/pipe')]) })
    await expectHint(watched, 'alpha', () => { fs.appendFileSync(join(root, 'alpha/SKILL.md'), 'after') })
  })

  await t.test('in a folder whose name looks like a temporary file', () =>
    expectHint(watched, 'gamma~', () => { fs.appendFileSync(join(root, 'gamma~/SKILL.md'), 'x') }))

  await t.test('in a folder with links to itself, through a file, and with a name that is too long', () =>
    expectHint(watched, 'linking', () => { fs.appendFileSync(join(root, 'linking/SKILL.md'), 'x') }))
})

t.test('K52: skills that come, go and move give a hint with their name', (t) => followSkills(t))

t.test('K52: skills that come, go and move give a hint with their name, beside a network disk', (t) => followSkills(t, BESIDE_NETWORK_DISK))

async function followSkills (t: Test, options: WatchedOptions = {}): Promise<void> {
  const folder = t.testdir({ skills: { old: skill() }, outside: { moved: skill() } })
  const skills = join(folder, 'skills')
  const watched = await watchRoot(t, skills, options)

  await t.test('a new one, and edits in it', async () => {
    await expectHint(watched, 'new', () => { fs.mkdirSync(join(skills, 'new')) })
    await expectWatched(watched, 'new', join(skills, 'new/SKILL.md'))
  })

  await t.test('sixty new ones at once', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `many-${i}`)
    await Promise.all(names.map((name) => expectHint(watched, name, () => { fs.mkdirSync(join(skills, name)) })))
    await Promise.all(names.map((name) => expectWatched(watched, name, join(skills, name, 'SKILL.md'))))
  })

  await t.test('one that is moved in from outside', async () => {
    await expectHint(watched, 'moved', () => { fs.renameSync(join(folder, 'outside/moved'), join(skills, 'moved')) })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('one that is renamed hints at both names, and is watched by the new one', async () => {
    const gone = watched.hinted('old')
    await expectHint(watched, 'renamed', () => { fs.renameSync(join(skills, 'old'), join(skills, 'renamed')) })
    await gone
    await expectWatched(watched, 'renamed', join(skills, 'renamed/SKILL.md'))
  })

  await t.test('one that is removed', () =>
    expectHint(watched, 'new', () => { fs.rmSync(join(skills, 'new'), { recursive: true }) }))

  await t.test('one that is replaced at once, and then edited', async () => {
    fs.mkdirSync(join(folder, 'next'))
    await expectHint(watched, 'moved', () => {
      fs.renameSync(join(skills, 'moved'), join(folder, 'outside/moved'))
      fs.renameSync(join(folder, 'next'), join(skills, 'moved'))
    })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('one that is removed and made again under the same name, and then edited', async () => {
    await expectHint(watched, 'moved', () => {
      fs.rmSync(join(skills, 'moved'), { recursive: true })
      fs.mkdirSync(join(skills, 'moved'))
    })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('two that change places', async (t) => {
    await expectHint(watched, 'moved', () => {
      fs.renameSync(join(skills, 'renamed'), join(folder, 'aside'))
      fs.renameSync(join(skills, 'moved'), join(skills, 'renamed'))
      fs.renameSync(join(folder, 'aside'), join(skills, 'moved'))
    })
    await expectWatched(watched, 'renamed', join(skills, 'renamed/SKILL.md'))
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
    const before = watched.hints.length
    await expectHint(watched, 'moved', () => { fs.appendFileSync(join(skills, 'moved/SKILL.md'), 'x') })
    t.notOk(watched.hints.slice(before).includes('renamed'), 'the old name is forgotten')
  })
}

t.test('K52: a skill that was replaced is watched before anybody scanned the root again', async (t) => {
  const root = t.testdir({ a: skill() })
  const watched = await watchRoot(t, root, { following: false })
  await expectHint(watched, 'a', () => {
    fs.rmSync(join(root, 'a'), { recursive: true })
    fs.mkdirSync(join(root, 'a'))
  })
  await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
})

t.test('K52: a skill that is no longer followed gives no hints', async (t) => {
  const root = t.testdir({ a: skill(), b: skill() })
  const watched = await watchRoot(t, root, { following: false })
  const { realPath, folders } = targetsIn(root)
  watched.watcher.follow({ realPath, folders: new Map([...folders].filter(([name]) => name === 'b')) })
  await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  const before = watched.hints.length
  fs.appendFileSync(join(root, 'a/SKILL.md'), 'x')
  await expectHint(watched, 'b', () => { fs.appendFileSync(join(root, 'b/SKILL.md'), 'x') })
  t.notOk(watched.hints.slice(before).includes('a'))
})

t.test('K52: links in a root', async (t) => {
  const root = t.testdir({
    real: skill(),
    '..v1': { skill: skill() },
    '..v2': { skill: skill() },
    '..data': t.fixture('symlink', '..v1'),
    linked: t.fixture('symlink', '..data/skill'),
    up: t.fixture('symlink', '..'),
    a: t.fixture('symlink', 'b'),
    b: t.fixture('symlink', 'a'),
    through: t.fixture('symlink', 'real/SKILL.md/x'),
    looping: { again: t.fixture('symlink', '.') }
  })
  const watched = await watchRoot(t, root)

  await t.test('loops, and links that lead nowhere, are no trouble', async (t) => {
    t.match(watched.watcher.state, { status: 'watching', errors: 0 })
    await expectHint(watched, 'looping', () => { fs.writeFileSync(join(root, 'looping/SKILL.md'), '') })
    await expectHint(watched, 'added', () => { fs.mkdirSync(join(root, 'added')) })
  })

  await t.test('an edit behind a link hints at the link', () =>
    expectHint(watched, 'linked', () => { fs.appendFileSync(join(root, '..v1/skill/SKILL.md'), 'x') }))

  await t.test('a swapped ..data gives a hint, and is followed', async () => {
    await expectHint(watched, '..data', () => { repoint(join(root, '..data'), '..v2') })
    await expectWatched(watched, 'linked', join(root, '..v2/skill/SKILL.md'))
  })

  await t.test('a re-pointed link is followed', async () => {
    await expectHint(watched, 'linked', () => { repoint(join(root, 'linked'), 'real') })
    await expectWatched(watched, 'linked', join(root, 'real/SKILL.md'))
  })

  await t.test('an edit in a folder with two names hints at both', async () => {
    const linked = watched.hinted('linked')
    await expectHint(watched, 'real', () => { fs.appendFileSync(join(root, 'real/SKILL.md'), 'x') })
    await linked
  })
})

t.test('K52: links that lead out of a root, to a folder that is replaced, and to none yet', async (t) => {
  const base = t.testdir({
    skills: { there: t.fixture('symlink', '../ext/skill'), nowhere: t.fixture('symlink', '../far/none') },
    ext: { skill: skill(), next: skill() },
    far: {},
    other: {}
  })
  const root = join(base, 'skills')
  const watched = await watchRoot(t, root, { following: false })
  const target = join(base, 'ext/skill')
  await t.test('what happens until the way of a link is watched gives no event: the watch is a hint', () =>
    expectHint(watched, 'nowhere', () => {
      watched.watcher.follow({ realPath: root, folders: new Map([['there', { realPath: target }]]), links: [join(root, 'there'), join(root, 'nowhere')] })
    }))

  await t.test('the target is replaced: the new one is watched', async () => {
    await expectHint(watched, 'there', () => {
      fs.renameSync(target, join(base, 'ext/before'))
      fs.renameSync(join(base, 'ext/next'), target)
    })
    await expectWatched(watched, 'there', join(target, 'SKILL.md'))
  })

  await t.test('a link that leads to nothing, and then to nothing elsewhere, until something is there', async () => {
    await expectHint(watched, 'nowhere', () => { repoint(join(root, 'nowhere'), '../other/none') })
    await expectHint(watched, 'nowhere', () => { fs.mkdirSync(join(base, 'other/none')) })
  })
})

function repoint (link: string, target: string): void {
  fs.symlinkSync(target, `${link}.new`)
  fs.renameSync(`${link}.new`, link)
}
