import { runFolders } from './helper/suite.ts'

await runFolders('sources/git', 'sources/site')
