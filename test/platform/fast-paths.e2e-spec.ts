import { jest } from '@jest/globals';
import type { Express, Request, Response } from 'express';
import { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { ApiKeysService } from '#api-keys';
import { Database } from '#postgres';
import { executePreparedQuery } from '../../libs/postgres/src/prepared-query.internals.js';
import { createTestApp } from '../support/app.js';

/* Which fast paths a service uses. The suite, which also runs with FAST_PATHS=off, shows that answers are the same. */

interface Observed {
  /** Fast paths in use. */
  readonly used: string[];
  readonly warnings: string[];
  /** The lines of the metric, without its name. */
  readonly metric: string[];
}

/** Starts a service, sends it a request, and looks at the objects that a fast path would replace. */
async function observe(setting: string): Promise<Observed> {
  const app = await createTestApp({ settings: { FAST_PATHS: setting } });
  try {
    const express = app.nest.getHttpAdapter().getInstance() as Express;
    const used: string[] = [];
    (app.nest.getHttpServer() as Server).prependOnceListener('request', (request: Request, response: Response) => {
      const ofRequest = Object.getPrototypeOf(request) as object;
      const ofResponse = Object.getPrototypeOf(response) as object;
      if (ofRequest === express.request && ofResponse === express.response) used.push('message-prototypes');
      // The server has its own request class, which handles `upgrade`.
      else if (
        Object.getPrototypeOf(ofRequest) !== IncomingMessage.prototype ||
        ofResponse !== ServerResponse.prototype
      )
        used.push('other prototypes');
      if (Object.hasOwn(request.socket, '_writev')) used.push('joined-writes');
    });
    const read = jest.spyOn(app.nest.get(Database), 'read');
    const { status } = await app.client.get('/v1/pets');
    expect(status).toBe(200);
    const { executionContextCreator } = (app.nest as any).routesResolver.routerExplorer;
    if (Object.hasOwn(executionContextCreator as object, 'createPipesFn')) used.push('handler-calls');
    if (app.nest.get<any>(Database).statements.execute === executePreparedQuery) used.push('prepared-queries');
    if (read.mock.calls.some(([statement]) => 'name' in statement && statement.name.includes('page')))
      used.push('batching');
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'prometheus', scopes: ['metrics:read'] });
    const { text } = await app.client.get('/metrics', { apiKey: secret });
    const metric = [...text.matchAll(/^petstore_fast_paths(.*)$/gm)].map(([, series = '']) => series);
    return {
      metric,
      used: used.sort(),
      warnings: app.log.lines.filter(({ level }) => level >= 40).map(({ msg }) => msg),
    };
  } finally {
    await app.close();
  }
}

const ALL = ['batching', 'handler-calls', 'joined-writes', 'message-prototypes', 'prepared-queries'];

test.each<[setting: string, used: readonly string[]]>([
  ['', ALL],
  ['on', ALL],
  ['off', []],
])('FAST_PATHS=%s', async (setting, used) => {
  const observed = await observe(setting);
  expect(observed).toMatchObject({ used, warnings: [] });
  // Without a series, no alert fires for what was switched off on purpose.
  expect(observed.metric.length > 0).toBe(setting !== 'off');
  expect(observed.metric.filter((series) => !series.endsWith('} 1'))).toEqual([]);
});

test('a tool that has replaced a method of Nest: its fast path stays off, as the log and the metric say', async () => {
  const replaced = jest.spyOn(RouterExecutionContext.prototype, 'createPipesFn');
  const { used, warnings, metric } = await observe('on');
  replaced.mockRestore();
  expect(used).toEqual(ALL.filter((path) => path !== 'handler-calls'));
  expect(warnings).toEqual([
    'The fast path handler-calls stays off. @nestjs/core: a tool has replaced RouterExecutionContext.createPipesFn. ' +
      'Responses are the same, only slower.',
  ]);
  expect(metric).toEqual(expect.arrayContaining(['{path="batching"} 1', '{path="handler-calls"} 0']));
});
