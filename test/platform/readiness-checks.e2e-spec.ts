import { Injectable, Module, Scope, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../../src/platform/errors/startup-error.js';
import { READINESS_TIMEOUT_MS, ReadinessCheck, ReadinessChecks } from '../../src/platform/health/readiness-checks.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* Readiness checks of a module, which /health/ready includes. */

@Injectable()
class Payments {
  answer: (signal: AbortSignal) => unknown = () => undefined;
  calls = 0;
  aborted: unknown;

  @ReadinessCheck('payments')
  ping(signal: AbortSignal): unknown {
    this.calls++;
    signal.addEventListener('abort', () => (this.aborted = signal.reason as unknown));
    return this.answer(signal);
  }

  @ReadinessCheck('search-index')
  async look(): Promise<void> {
    await sleep(1);
  }
}

@Module({ providers: [Payments] })
class PaymentsModule {}

let app: TestApp;
let payments: Payments;
beforeAll(async () => {
  app = await createTestApp({ features: [PaymentsModule] });
  payments = app.nest.get(Payments);
});
afterAll(() => app.close());

const ready = (): Promise<HttpAnswer> => app.client.get('/health/ready', { apiKey: null });

/** Waits until the endpoint answers with this status; answers are shared for a second. */
async function readyWith(status: number): Promise<HttpAnswer> {
  for (const deadline = performance.now() + 10_000; ; await sleep(50)) {
    const answer = await ready();
    if (answer.status === status) return answer;
    if (performance.now() > deadline) throw new Error(`/health/ready stays ${answer.status}: ${answer.text}`);
  }
}

test('200 names the checks, and asks them once a second at most', async () => {
  const before = payments.calls;
  const answers = await Promise.all(Array.from({ length: 20 }, ready));
  for (const { status, json } of answers) {
    expect([status, json]).toEqual([200, { status: 'ok', checks: { payments: 'ok', 'search-index': 'ok' } }]);
  }
  expect(payments.calls - before).toBeLessThanOrEqual(2);
});

test('503 while one throws, logged once, and 200 again', async () => {
  payments.answer = () => Promise.reject(new TypeError('no route to the bank'));
  const refused = await readyWith(503);
  expect([refused.headers['retry-after'], refused.json]).toEqual([
    '1',
    {
      code: 'unavailable',
      message: 'These readiness checks fail: payments.',
      status: 503,
      details: { checks: { payments: 'failed', 'search-index': 'ok' } },
    },
  ]);
  const failing = payments.calls;
  while (payments.calls === failing) {
    await ready();
    await sleep(50);
  }
  const lines = app.log.lines.filter(({ msg }) => msg === "The readiness check 'payments' fails.");
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).toContain('no route to the bank');
  // A failed check does not stop the service.
  expect((await app.client.get('/v1/pets')).status).toBe(200);
  expect((await app.client.get('/health/live', { apiKey: null })).status).toBe(200);

  payments.answer = () => {
    throw new Error('thrown, not rejected');
  };
  await readyWith(503);
  payments.answer = () => undefined;
  await readyWith(200);
  expect(app.log.text).toContain("The readiness check 'payments' succeeds again.");
});

test('503 soon after a check stops answering; the check is aborted, and not called again before it ends', async () => {
  let finish: () => void = () => undefined;
  payments.answer = () => new Promise<void>((resolve) => (finish = resolve));
  payments.aborted = undefined;
  const started = performance.now();
  await readyWith(503);
  // The check may be called up to a second later.
  expect(performance.now() - started).toBeLessThan(4 * READINESS_TIMEOUT_MS);
  expect(payments.aborted).toMatchObject({ name: 'TimeoutError' });
  const { calls } = payments;
  await sleep(1_500);
  expect((await ready()).status).toBe(503);
  expect(payments.calls).toBe(calls);
  payments.answer = () => undefined;
  finish();
  await readyWith(200);
});

test('the start fails for two checks with one name, and for a check in a request-scoped provider', async () => {
  @Injectable()
  class Twice {
    @ReadinessCheck('payments')
    ping(): void {
      expect(this).toBeDefined();
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class OfRequest {
    @ReadinessCheck('request')
    ping(): void {
      expect(this).toBeDefined();
    }
  }
  const start = async (...providers: Type[]): Promise<unknown> => {
    const options = { imports: [DiscoveryModule], providers: [ReadinessChecks, ...providers] };
    return (await Test.createTestingModule(options).compile()).init();
  };
  await expect(start(Payments, Twice)).rejects.toThrow(
    new StartupError("Two readiness checks have the name 'payments'. Give each @ReadinessCheck its own."),
  );
  await expect(start(Payments, Twice)).rejects.toBeInstanceOf(StartupError);
  await expect(start(OfRequest)).rejects.toThrow("'request' stands at OfRequest");
  await expect(start(OfRequest)).rejects.toBeInstanceOf(StartupError);
  await expect(start(Payments)).resolves.toBeDefined();
  expect(() => ReadinessCheck('No name')).toThrow('is no name of a readiness check');
});
