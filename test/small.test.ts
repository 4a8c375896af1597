import { runFolders } from './helper/suite.ts'

await runFolders('config', 'export', 'layout', 'library', 'listing', 'well-known')
