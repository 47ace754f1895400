/** Fastify 5 with schemas for requests and responses, and pg with prepared statements. */
import fastify from 'fastify';
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
const app = fastify();

const PET = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string' },
  },
};
const NEW_PET = {
  type: 'object',
  required: ['name', 'categoryId'],
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 255 },
    categoryId: { type: 'integer' },
    status: { type: 'string', enum: STATUSES, default: 'available' },
  },
};
const LIST_QUERY = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    status: { type: 'string', enum: STATUSES },
    cursor: { type: 'string' },
  },
};

app.addHook('onRequest', (request, reply, done) => {
  if (request.headers.authorization === authorization) return done();
  void reply.code(401).send({ code: 'invalid_api_key', message: 'no key', status: 401 });
});

interface ListQuery {
  limit: number;
  status?: string;
  cursor?: string;
}

const listSchema = { querystring: LIST_QUERY, response: { 200: { type: 'array', items: PET } } };
app.get<{ Querystring: ListQuery }>('/v1/pets', { schema: listSchema }, async ({ query }, reply) => {
  const { limit, status, cursor } = query;
  const { rows } = await pool.query<PetRow>(listStatement(limit, status, cursor));
  const pets = rows.slice(0, limit);
  const last = rows.length > limit ? pets.at(-1) : undefined;
  const filter = status === undefined ? '' : `&status=${status}`;
  if (last) {
    void reply.header('Link', `<http://localhost:3000/v1/pets?limit=${limit}${filter}&cursor=${last.id}>; rel="next"`);
  }
  return pets.map(toPet);
});

app.get<{ Params: { id: string } }>(
  '/v1/pets/:id',
  { schema: { response: { 200: PET } } },
  async ({ params }, reply) => {
    const { rows } = await pool.query<PetRow>({ ...GET_STATEMENT, values: [params.id] });
    if (rows[0]) return toPet(rows[0]);
    return reply.code(404).send({ code: 'pet_not_found', message: 'not found', status: 404 });
  },
);

interface NewPet {
  name: string;
  categoryId: number;
  status: string;
}

const createSchema = { body: NEW_PET, response: { 201: PET } };
app.post<{ Body: NewPet }>('/v1/pets', { schema: createSchema }, async ({ body }, reply) => {
  const values = [body.name, body.categoryId, body.status];
  const { rows } = await pool.query<PetRow>({ ...CREATE_STATEMENT, values });
  const row = rows[0] as PetRow;
  void reply.code(201).header('Location', `http://localhost:3000/v1/pets/${row.id}`);
  return toPet(row);
});

await app.listen({ port: PORT, host: '127.0.0.1' });
