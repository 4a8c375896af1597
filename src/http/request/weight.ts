declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request asks for beyond the usual: it counts more towards the limit of its caller. */
    weight?: (request: FastifyRequest) => Weight | undefined
    /** What a request asks for beyond the usual, where only its body says it. */
    bodyWeight?: (request: FastifyRequest) => Weight | undefined
    /** Whether requests count towards no limit. Those of probes never do. */
    isUnlimited?: boolean
  }
}

/** `costly` takes much work, as a search does. `stream` has an answer that stays open; a HEAD has none. */
export type Weight = 'costly' | 'stream'
