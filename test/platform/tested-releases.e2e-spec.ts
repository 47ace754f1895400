import type { INestApplication } from '@nestjs/common';
import { TESTED_RELEASES } from '../../libs/runtime/src/tested-releases.js';
import { createTestApp } from '../support/app.js';

const TOKEN = 'TokenOfTheMetricsOfTheTests0123456';
const known = { ...TESTED_RELEASES };
const releases = TESTED_RELEASES as Record<string, readonly string[]>;
afterEach(() => {
  delete releases['lost'];
  Object.assign(releases, known);
});

/** What a start says, and whether Nest itself calls the handlers. */
async function observe(): Promise<{ warnings: string[]; metric: string | undefined; isByNest: boolean }> {
  const app = await createTestApp({ settings: { METRICS_TOKEN: TOKEN } });
  const { text } = await app.client.get('/metrics', { apiKey: TOKEN });
  const { executionContextCreator } = (app.nest as INestApplication & Record<string, any>)['routesResolver']
    .routerExplorer;
  expect(await app.client.get('/v1/pets')).toMatchObject({ status: 200 });
  await app.close();
  return {
    warnings: app.log.lines.filter(({ level }) => level >= 40).map(({ msg }) => msg),
    metric: /^petstore_untested_dependencies (\d+)$/m.exec(text)?.[1],
    isByNest: !Object.hasOwn(executionContextCreator as object, 'create'),
  };
}

test('on tested releases nothing is said', async () => {
  expect(await observe()).toEqual({ warnings: [], metric: '0', isByNest: false });
});

test('others are named in one warning, and the metric counts them; Nest itself calls the handlers of another Nest', async () => {
  // Of one that is not found, the release is not known.
  Object.assign(releases, { '@nestjs/core': ['12.4'], pg: ['8.23.0', '8.23.10'], express: ['5'], lost: ['1'] });
  const { warnings, ...others } = await observe();
  expect(others).toEqual({ metric: '3', isByNest: true });
  expect(warnings).toEqual([
    expect.stringMatching(
      /^The tests have not passed for @nestjs\/core 12[\d.]+ \(tested: 12\.4\), pg 8\.[\d.]+ \(tested: 8\.23\.0, 8\.23\.10\), lost of an unknown release \(tested: 1\)\. Install /,
    ),
  ]);
});
