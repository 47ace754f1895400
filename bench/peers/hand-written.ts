/** node:http and pg with prepared statements, as a good engineer writes a service without further requirements. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import pg from 'pg';
import {
  API_KEY,
  CREATE_STATEMENT,
  DATABASE_URL,
  GET_STATEMENT,
  IDLE_TIMEOUT_MS,
  listStatement,
  type PetRow,
  POOL_SIZE,
  PORT,
  STATUSES,
  toPet,
} from './peer.js';

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: POOL_SIZE, idleTimeoutMillis: IDLE_TIMEOUT_MS });
const authorization = `Bearer ${API_KEY}`;

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function fail(response: ServerResponse, status: number, code: string, message: string): void {
  send(response, status, { code, message, status });
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(Buffer.concat(chunks).toString()));
    request.on('error', reject);
  });
}

async function list(url: URL, response: ServerResponse): Promise<void> {
  const limit = Number(url.searchParams.get('limit') ?? 20);
  const status = url.searchParams.get('status') ?? undefined;
  const cursor = url.searchParams.get('cursor') ?? undefined;
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) return fail(response, 400, 'invalid_parameter', 'limit');
  if (status !== undefined && !STATUSES.includes(status)) return fail(response, 400, 'invalid_parameter', 'status');
  const { rows } = await pool.query<PetRow>(listStatement(limit, status, cursor));
  const pets = rows.slice(0, limit);
  const last = rows.length > limit ? pets.at(-1) : undefined;
  const filter = status === undefined ? '' : `&status=${status}`;
  const link = last && `<http://localhost:3000/v1/pets?limit=${limit}${filter}&cursor=${last.id}>; rel="next"`;
  send(response, 200, pets.map(toPet), link === undefined ? {} : { Link: link });
}

async function get(id: string, response: ServerResponse): Promise<void> {
  if (!/^\d{1,18}$/.test(id)) return fail(response, 404, 'pet_not_found', 'not found');
  const { rows } = await pool.query<PetRow>({ ...GET_STATEMENT, values: [id] });
  if (!rows[0]) return fail(response, 404, 'pet_not_found', 'not found');
  send(response, 200, toPet(rows[0]));
}

async function create(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pet = JSON.parse(await readBody(request)) as { name?: unknown; categoryId?: unknown; status?: unknown };
  const { name, categoryId, status = 'available' } = pet;
  if (typeof name !== 'string' || name.length < 1 || name.length > 255 || !Number.isInteger(categoryId)) {
    return fail(response, 400, 'validation_failed', 'name and categoryId are required');
  }
  if (!STATUSES.includes(status as string)) return fail(response, 400, 'validation_failed', 'status');
  const { rows } = await pool.query<PetRow>({ ...CREATE_STATEMENT, values: [name, categoryId, status] });
  const row = rows[0] as PetRow;
  send(response, 201, toPet(row), { Location: `http://localhost:3000/v1/pets/${row.id}` });
}

async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.headers.authorization !== authorization) return fail(response, 401, 'invalid_api_key', 'no key');
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname === '/v1/pets') {
    if (request.method === 'GET') return list(url, response);
    if (request.method === 'POST') return create(request, response);
  } else if (url.pathname.startsWith('/v1/pets/') && request.method === 'GET') {
    return get(url.pathname.slice('/v1/pets/'.length), response);
  }
  fail(response, 404, 'route_not_found', 'not found');
}

createServer((request, response) => {
  route(request, response).catch(() => fail(response, 500, 'internal_error', 'failed'));
}).listen(PORT, '127.0.0.1');
