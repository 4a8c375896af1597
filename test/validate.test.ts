import { runFolders } from './helper/suite.ts'

await runFolders('validate', 'verdicts', 'clients')
