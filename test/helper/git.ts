import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { startServer } from './fault-server.ts'
import { skillText } from './skills.ts'

const IDENTITY = {
  GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org'
}

export function createRepository (t: Test, name = 'repo') {
  const path = join(t.testdir(), name)
  mkdirSync(path, { recursive: true })
  const git = (args: readonly string[], input?: string | Buffer): string => execFileSync('git', ['-C', path, ...args], {
    // Without a repository of its own, git would use that of the checkout.
    env: {
      PATH: process.env.PATH, HOME: path, GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: dirname(path), ...IDENTITY
    },
    ...input !== undefined && { input },
    stdio: ['pipe', 'pipe', 'ignore']
  }).toString().trim()
  git(['init', '-q', '-b', 'main'])
  for (const key of ['uploadpack.allowAnySHA1InWant', 'uploadpack.allowFilter', 'http.uploadpack']) {
    git(['config', key, 'true'])
  }
  return {
    path,
    git,
    /** Commits these files (undefined removes one), and returns the id of the commit. */
    commit (files: Readonly<Record<string, string | Buffer | undefined>>): string {
      for (const [file, content] of Object.entries(files)) {
        const to = join(path, file)
        if (content === undefined) {
          rmSync(to, { recursive: true })
          continue
        }
        mkdirSync(dirname(to), { recursive: true })
        writeFileSync(to, content)
      }
      git(['add', '-A'])
      git(['commit', '-q', '--allow-empty', '-m', 'change'])
      return git(['rev-parse', 'HEAD'])
    },
    /** Commits a tree whose entries are lines for `git mktree`; returns the id. */
    commitTree (lines: readonly string[]): string {
      const tree = git(['mktree', '--missing', '-z'], lines.map((line) => `${line}\0`).join(''))
      const commit = git(['commit-tree', tree, '-m', 'change'])
      git(['update-ref', 'refs/heads/main', commit])
      return commit
    }
  }
}

export type Repository = ReturnType<typeof createRepository>

/** Files of a skill at `skills/<name>`. */
export function skillFiles (...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [`skills/${name}/SKILL.md`, skillText(name)]))
}

export interface GitHost {
  readonly url: string
  readonly requests: readonly IncomingMessage[]
  /** Answers a request itself, or returns undefined to have git answer. */
  fault: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
}

/** A host that serves repositories below a folder over smart HTTP, by `git http-backend`. */
export async function startGitHost (t: Test, folder: string): Promise<GitHost> {
  const { url, requests } = await startServer(t, (request, response) => {
    if (host.fault?.(request, response) !== true) serveGit(folder, request, response)
  })
  const host: GitHost = { url, requests, fault: undefined }
  return host
}

/** A host with one repository, which has the skill `a`, and its address. */
export async function startTeam (t: Test) {
  const repository = createRepository(t, 'team.git')
  const commit = repository.commit(skillFiles('a'))
  const host = await startGitHost(t, dirname(repository.path))
  return { repository, commit, host, address: `git+${host.url}/team.git` }
}

/** Answers as `git http-backend` does for the repositories below a folder. */
export function serveGit (folder: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://host')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1'
    },
    stdio: ['pipe', 'pipe', 'ignore']
  })
  request.pipe(child.stdin)
  child.stdin.on('error', () => {})
  let head: Buffer | undefined = Buffer.alloc(0)
  child.stdout.on('data', (chunk: Buffer) => {
    if (head === undefined) {
      response.write(chunk)
      return
    }
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end === -1) return
    for (const line of head.toString('latin1', 0, end).split('\r\n')) {
      const [name = '', value = ''] = line.split(/: (.*)/)
      if (name.toLowerCase() === 'status') response.statusCode = Number.parseInt(value)
      else response.setHeader(name, value)
    }
    response.write(head.subarray(end + 4))
    head = undefined
  })
  child.stdout.on('end', () => { response.end() })
}
