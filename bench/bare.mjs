// The lower bound for a document: the same bytes from a constant by node:http, without a log.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const { document } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const body = Buffer.from(document)

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length }).end(body)
})
server.listen(0, '127.0.0.1', () => { console.log(`listening at http://127.0.0.1:${server.address().port}`) })
process.once('SIGTERM', () => { process.exit(0) })
