import { runFolders } from './helper/suite.ts'

await runFolders('core', 'core/format')
