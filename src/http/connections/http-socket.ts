import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A socket of Node's HTTP server. The response that is being written has no public name; Node's own handlers ask it too. */
export type HttpSocket = Socket & { readonly _httpMessage?: ServerResponse | null }
