import { runFolders } from './helper/suite.ts'

await runFolders('cli')
