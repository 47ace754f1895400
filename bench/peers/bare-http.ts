/** node:http with one fixed page for every request: the upper bound for a server on Node. */
import { createServer } from 'node:http';
import pg from 'pg';
import { DATABASE_URL, listStatement, type PetRow, PORT, toPet } from './peer.js';

const client = new pg.Client(DATABASE_URL);
await client.connect();
const { rows } = await client.query<PetRow>(listStatement(19, undefined, undefined));
await client.end();

const body = JSON.stringify(rows.map(toPet));
createServer((_request, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}).listen(PORT, '127.0.0.1');
