/** Zod, which the schemas of the SDK are written with: a module of its own, so that it can be loaded before them. */
export { object } from 'zod/v4'
