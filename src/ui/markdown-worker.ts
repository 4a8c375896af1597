import { parentPort } from 'node:worker_threads'
import { renderMarkdown } from './markdown/render.ts'
import type { RenderJob } from './markdown-renderer.ts'

/** The thread that renders: one job, one answer, in order. */
parentPort?.on('message', ({ text, place }: RenderJob) => {
  parentPort?.postMessage(renderMarkdown(text, place))
})
