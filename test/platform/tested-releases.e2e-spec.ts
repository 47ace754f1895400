import type { INestApplication } from '@nestjs/common';
import { TESTED_RELEASES } from '../../libs/runtime/src/tested-releases.js';
import { createTestApp } from '../support/app.js';
import { judgeApp } from '../support/judge-app.js';

const known = { ...TESTED_RELEASES };
const releases = TESTED_RELEASES as Record<string, readonly string[]>;
afterEach(() => {
  delete releases['lost'];
  Object.assign(releases, known);
});

/** What a start says, whether Nest itself calls the handlers, and which rows of the contract fail. */
async function observe(): Promise<Record<'warnings' | 'metric' | 'isByNest' | 'failures', unknown>> {
  const app = await createTestApp({ settings: { REQUEST_TIMEOUT_MS: '1500' } });
  const apiKey = await app.createApiKey({ scopes: ['metrics:read'] });
  const { text } = await app.client.get('/metrics', { apiKey });
  const { executionContextCreator } = (app.nest as INestApplication & Record<string, any>)['routesResolver']
    .routerExplorer;
  const warnings = app.log.lines.filter(({ level }) => level >= 40).map(({ msg }) => msg);
  const isByNest = !Object.hasOwn(executionContextCreator as object, 'create');
  const { failures } = isByNest ? await judgeApp(app) : { failures: [] };
  await app.close();
  return { warnings, metric: /^petstore_untested_dependencies (\d+)$/m.exec(text)?.[1], isByNest, failures };
}

test('on tested releases nothing is said', async () => {
  expect(await observe()).toEqual({ warnings: [], metric: '0', isByNest: false, failures: [] });
});

test('others are named in one warning, and the metric counts them; Nest itself calls the handlers of another Nest, and the contract holds', async () => {
  // Of one that is not found, the release is not known.
  Object.assign(releases, { '@nestjs/core': ['12.4'], pg: ['8.23.0', '8.23.10'], express: ['5'], lost: ['1'] });
  const { warnings, ...others } = await observe();
  expect(others).toEqual({ metric: '3', isByNest: true, failures: [] });
  expect(warnings).toEqual([
    expect.stringMatching(
      /^The tests have not passed for @nestjs\/core 12[\d.]+ \(tested: 12\.4\), pg 8\.[\d.]+ \(tested: 8\.23\.0, 8\.23\.10\), lost of an unknown release \(tested: 1\)\. Install /,
    ),
  ]);
});
