import { parentPort } from 'node:worker_threads'
import { renderMarkdown } from './markdown/render.ts'
import type { RenderJob } from './markdown-renderer.ts'
import { renderDiff } from './markup/diff.ts'

/** The thread that renders: a message when it can begin; then one job, one answer, in order. */
parentPort?.on('message', (job: RenderJob) => {
  parentPort?.postMessage('context' in job ? renderMarkdown(job.text, job.context) : renderDiff(job.before, job.after))
})
parentPort?.postMessage('')
