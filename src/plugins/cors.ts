import fastifyCors from '@fastify/cors'
import fp from 'fastify-plugin'
import { EXPOSED_HEADERS } from '../http/headers.ts'

/** Opens every route to the web pages of some origins. After `errors`, whose handler its `OPTIONS` route gets then. */
export const cors = fp<{ readonly allowedOrigins: readonly string[] }>(async function cors (app, { allowedOrigins }) {
  await app.register(fastifyCors, {
    // With a list the plugin would answer the preflight of any page.
    origin: async (origin = '') => allowedOrigins.includes(origin.toLowerCase()) && origin,
    methods: ['GET', 'HEAD', 'POST'],
    exposedHeaders: EXPOSED_HEADERS,
    // In seconds, for preflights: browsers keep them for two hours at most.
    maxAge: 7_200,
    // The plugin's own refusal of an OPTIONS that is not a preflight is plain text.
    strictPreflight: false
  })
}, { name: 'cors' })
