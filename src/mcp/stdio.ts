import type { Readable, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { unlessRefused } from '../core/shared/errors.ts'
import { LineTransport } from './line-transport.ts'
import { followChanges } from './listen.ts'
import { createMcpServer, type McpServerOptions } from './server.ts'
import { mainFileUri, skillUri } from './skill-uri.ts'

interface StdioOptions extends McpServerOptions {
  /** Default: standard input and output of the process. */
  readonly input?: Readable
  readonly output?: Writable
}

/** Serves MCP to one client over standard input and output; nothing else may write there. */
export function serveMcpOverStdio (options: StdioOptions) {
  const { skills, log, input = process.stdin, output = process.stdout } = options
  const onError = (err: unknown) => { log.warn({ err }, 'error of the MCP connection') }
  const server = serveStdio(({ era }) => {
    const server = createMcpServer(options, { isModern: era === 'modern', fields: {}, operation: undefined })

    async function sendUpdates (name: string): Promise<void> {
      const manifest = await unlessRefused(() => skills.read(name, (skill) => skill.manifest()))
      const uris = manifest?.files.map(({ path }) => skillUri(name, path)) ?? []
      for (const uri of new Set([mainFileUri(name), ...era === 'modern' ? uris : []])) {
        await server.sendResourceUpdated({ uri })
      }
    }

    server.onclose = followChanges(skills.feed, {
      onLists () {
        Promise.all([server.sendResourceListChanged(), server.sendPromptListChanged()]).catch(onError)
      },
      onSkill (name) { sendUpdates(name).catch(onError) }
    })
    return server
  }, { transport: new LineTransport(input, output), onerror: onError })
  const ends = [finished(input, { writable: false }), finished(output, { readable: false })]
  return {
    /** Resolves when the client has closed its input or output. */
    closed: Promise.race(ends).then(() => {}, () => {}),
    close: () => server.close()
  }
}
