// tap loads itself into each process that a test starts, to measure coverage. Processes of the service must be those of
// users: another user may not write into tap's folder, and loading tap takes time.
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS
