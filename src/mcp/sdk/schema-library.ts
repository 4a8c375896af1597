/** Zod, which the schemas of the SDK are written with: a module of its own, so that it can be loaded before them. */
export { array, enum, int, literal, looseObject, string, union } from 'zod/v4'
