// Prints the rows of a segment, a line each.
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const file = await asyncBufferFromFile(process.argv[2])
const parsers = { timestampFromMicroseconds: n => n }
const columns = ['time', 'client', 'client_port', 'name', 'type', 'rcode', 'flags', 'source', 'rule', 'answers', 'latency', 'query_size', 'size']
const lines = []
for (const row of await parquetReadObjects({ file, compressors, parsers })) {
  lines.push(columns.map(c => row[c]).join(' '))
}
console.log(lines.join('\n'))
