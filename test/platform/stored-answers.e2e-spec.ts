import { Body, Controller, Module, Post } from '@nestjs/common';
import { Idempotency, type IdempotencyKey, Idempotent, type Kept } from '#resources';
import { TextProperty } from '#input';
import { RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* A POST whose response cannot be derived from the request: it has an id, a time, and a sum over rows that change. */

class NewBill {
  @TextProperty({ description: 'For whom.', minLength: 1, maxLength: 40 })
  name: string;
}

interface Bill {
  id: bigint;
  name: string;
  count: bigint;
  madeAt: Date;
  note?: string | undefined;
}

/** The bills that were sent to their customers. */
const sent: string[] = [];

@Controller('test-bills')
@RequireScopes()
class TestBillsController {
  constructor(private readonly idempotency: Idempotency) {}

  @Post()
  async addBill(@Body() bill: NewBill, @Idempotent() key: IdempotencyKey | undefined): Promise<Kept<Bill>> {
    const added = await this.idempotency.answer(key, bill, async ({ manager }): Promise<Bill> => {
      const [row] = await manager.query<{ id: string; made_at: Date; count: string }[]>(
        `INSERT INTO test_bill (name) VALUES ($1)
         RETURNING id, made_at, (SELECT count(*) + 9007199254740993 FROM test_bill) AS count`,
        [bill.name],
      );
      const { id, made_at, count } = row as { id: string; made_at: Date; count: string };
      return { id: BigInt(id), name: bill.name, count: BigInt(count), madeAt: made_at, note: undefined };
    });
    if (!key?.isReplayed) sent.push(added.name);
    return added;
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

function add(key: string | undefined, body: object): Promise<HttpAnswer> {
  return app.client.post('/v1/test-bills', body, { headers: { 'idempotency-key': key } });
}

test('201: the first response, byte for byte, also after rows were changed or deleted', async () => {
  const bill = { name: 'Ann "A" 🐕' };
  const first = await add('k-1', bill);
  expect([first.status, first.json]).toEqual([
    201,
    {
      id: 9223372036854775000n,
      name: 'Ann "A" 🐕',
      count: 9007199254740993n,
      madeAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
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

test('an event after the commit is sent once for a key, however many requests arrive at the same moment', async () => {
  sent.length = 0;
  const names = Array.from({ length: 20 }, (_, index) => `customer ${index}`);
  const answers = await Promise.all(names.flatMap((name) => Array.from({ length: 8 }, () => add(name, { name }))));
  expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
  expect(sent.sort()).toEqual(names.sort());
  await add(undefined, { name: 'Ann' });
  expect(sent).toHaveLength(21);
});
