// tap loads itself into each process that a test starts, to see what it covers. The processes of the service are those
// of users: another user may not write into tap's folder, and loading takes its time.
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS
