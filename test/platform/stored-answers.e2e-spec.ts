import { Body, Controller, Module, Post } from '@nestjs/common';
import { IntegerProperty, TextProperty } from '../../src/platform/input/property.decorators.js';
import type { IdempotencyKey } from '../../src/platform/idempotency/idempotency-key.js';
import { Idempotency } from '../../src/platform/idempotency/idempotency.js';
import { Idempotent } from '../../src/platform/idempotency/idempotent.decorator.js';
import { MAX_STORED_ANSWER_BYTES, type Kept } from '../../src/platform/idempotency/stored-answer.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* A POST whose answer cannot be derived from the request: it has an id, a time, and a sum over rows that change. */

class NewBill {
  @TextProperty({ description: 'For whom.', minLength: 1, maxLength: 40 })
  name: string;

  @IntegerProperty({ description: 'Characters of the receipt.', minimum: 0, maximum: 100_000 })
  receipt: number;
}

interface Bill {
  id: bigint;
  name: string;
  count: bigint;
  madeAt: Date;
  receipt: string;
  note?: string | undefined;
}

@Controller('test-bills')
class TestBillsController {
  constructor(private readonly idempotency: Idempotency) {}

  @Post()
  addBill(@Body() bill: NewBill, @Idempotent() key: IdempotencyKey | undefined): Promise<Kept<Bill>> {
    return this.idempotency.answer(key, bill, async ({ manager }): Promise<Bill> => {
      const [row] = await manager.query<{ id: string; made_at: Date; count: string }[]>(
        `INSERT INTO test_bill (name) VALUES ($1)
         RETURNING id, made_at, (SELECT count(*) + 9007199254740993 FROM test_bill) AS count`,
        [bill.name],
      );
      const { id, made_at, count } = row as { id: string; made_at: Date; count: string };
      const receipt = 'x'.repeat(bill.receipt);
      return { id: BigInt(id), name: bill.name, count: BigInt(count), madeAt: made_at, receipt, note: undefined };
    });
  }

  @Post('nothing')
  async addNothing(@Body() bill: NewBill, @Idempotent() key: IdempotencyKey | undefined): Promise<object> {
    const nothing = await this.idempotency.answer(key, bill, () => Promise.resolve(undefined));
    return { isNothing: nothing === undefined };
  }

  @Post('once')
  async addOnce(@Body() bill: NewBill, @Idempotent() key: IdempotencyKey | undefined): Promise<object> {
    const work = (): Promise<string> => Promise.resolve('7');
    const isAnswer = bill.receipt === 1;
    return { text: await this.idempotency[isAnswer ? 'answer' : 'once'](key, { name: bill.name }, work) };
  }
}

@Module({ controllers: [TestBillsController] })
class BillsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [BillsModule] });
  await app.sql(
    `CREATE TABLE test_bill (id bigint GENERATED ALWAYS AS IDENTITY (START 9223372036854775000), name text, made_at timestamptz DEFAULT now())`,
  );
});
afterAll(() => app.close());

function add(key: string | undefined, body: object, path = ''): Promise<HttpAnswer> {
  return app.client.post(`/v1/test-bills${path}`, body, { headers: { 'idempotency-key': key }, expects500: true });
}

test('201: the first answer, byte for byte, also after rows were changed or deleted', async () => {
  const bill = { name: 'Ann "A" 🐕', receipt: 3 };
  const first = await add('k-1', bill);
  expect([first.status, first.json]).toEqual([
    201,
    {
      id: 9223372036854775000n,
      name: 'Ann "A" 🐕',
      count: 9007199254740993n,
      madeAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      receipt: 'xxx',
    },
  ]);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  await add(undefined, bill);
  await app.sql(`UPDATE test_bill SET name = 'Max'`);
  await app.sql('DELETE FROM test_bill WHERE id = $1', [first.json['id' as never]]);
  const again = await add('k-1', bill);
  expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
  expect((await app.sql('SELECT count(*)::int FROM test_bill'))[0]).toEqual([1]);
});

test('500 for an answer longer than the limit; the log names it, and nothing is changed', async () => {
  const before = await app.sql('SELECT count(*)::int FROM test_bill');
  const refused = await add('k-2', { name: 'Ann', receipt: MAX_STORED_ANSWER_BYTES });
  expect([refused.status, refused.json.code]).toEqual([500, 'internal_error']);
  expect(JSON.stringify(app.log)).toMatch(/The answer to POST \/v1\/test-bills has \d+ bytes, more than the 65536/);
  expect(await app.sql('SELECT count(*)::int FROM test_bill')).toEqual(before);
  // The key can be used again.
  expect((await add('k-2', { name: 'Ann', receipt: MAX_STORED_ANSWER_BYTES - 200 })).status).toBe(201);
});

test('an answer may be undefined', async () => {
  for (let time = 0; time < 2; time++) {
    expect((await add('k-3', { name: 'Ann', receipt: 0 }, '/nothing')).json).toEqual({ isNothing: true });
  }
});

test('a key that `once` has stored is not used as a stored answer', async () => {
  expect((await add('k-4', { name: 'Ann', receipt: 0 }, '/once')).json).toEqual({ text: '7' });
  expect((await add('k-4', { name: 'Ann', receipt: 1 }, '/once')).status).toBe(500);
  expect(JSON.stringify(app.log)).toContain('`once` has stored it');
});
