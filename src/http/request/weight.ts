declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request asks for beyond the usual, its body included: it counts more towards its caller's limit. */
    weight?: (request: FastifyRequest) => Weight | undefined
  }
}

/** `costly` takes much work, as a search does. `stream` has an answer that stays open; a HEAD has none. */
export type Weight = 'costly' | 'stream'
